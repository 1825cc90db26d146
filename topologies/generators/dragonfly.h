// SPDX-License-Identifier: GPL-2.0-only
// Dragonfly (Kim, Dally, Scott, Abts: "Technology-driven, highly-scalable dragonfly topology", ISCA
// 2008): groups of fully cabled routers, and cables between every two groups.
//
//   group<g>/router<r> ──LOCAL── every router of its group, p NICs, h GLOBAL cables
//   a·h GLOBAL ends of a group, dealt evenly over the other groups; at most a·h + 1 groups
//
// Dragonfly+ (Shpiner et al., HiPINEB 2017), where `spines_per_group` is not 0: NICs hang on
// group<g>/leaf<l>, every leaf on every group<g>/spine<s>, and the GLOBAL cables on the spines.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct DragonflySpec {
  NetworkSpec network{};
  uint32_t groups = 9;
  uint32_t routers_per_group = 4;         // a; of a dragonfly+: leaves
  uint32_t spines_per_group = 0;          // 0: a dragonfly
  uint32_t nics_per_router = 2;           // p
  uint32_t global_cables_per_router = 2;  // h; of a dragonfly+: per spine
  LinkSpec local{};
  LinkSpec global{};     // `count` multiplies each of the global cables
  bool valiant = false;  // each flow over a switch that it draws
};

std::vector<SpecProblem> CheckDragonfly(const DragonflySpec& spec);
// Precondition: CheckDragonfly(spec) is empty.
FabricGraph MakeDragonfly(const DragonflySpec& spec);

}  // namespace railyard
