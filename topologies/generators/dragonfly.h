// SPDX-License-Identifier: GPL-2.0-only
// Generates a dragonfly (Kim, Dally, Scott, Abts: "Technology-driven, highly-scalable dragonfly
// topology", ISCA 2008): the routers of a group are all cabled to each other, and every two groups
// are joined by cables.
//
//   group<g>/router<r> ──LOCAL── every router of its group, p NICs, h GLOBAL cables
//   the a·h GLOBAL ends of a group are dealt evenly over the other groups; at most a·h + 1 groups
//
// If `spines_per_group` is not 0, it is a Dragonfly+ (Shpiner et al., HiPINEB 2017): NICs are
// cabled to group<g>/leaf<l>, every leaf to every group<g>/spine<s>, and the GLOBAL cables end at
// the spines.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct DragonflySpec {
  NetworkSpec network{};
  uint32_t groups = 9;
  uint32_t routers_per_group = 4;         // a; in a dragonfly+: leaves
  uint32_t spines_per_group = 0;          // 0: a dragonfly
  uint32_t nics_per_router = 2;           // p
  uint32_t global_cables_per_router = 2;  // h; in a dragonfly+: per spine
  LinkSpec local{};
  LinkSpec global{};     // each global cable is a bundle of `count`
  bool valiant = false;  // each flow passes a randomly drawn switch
};

std::vector<SpecProblem> CheckDragonfly(const DragonflySpec& spec);
// Precondition: CheckDragonfly(spec) is empty.
FabricGraph MakeDragonfly(const DragonflySpec& spec);

}  // namespace railyard
