// SPDX-License-Identifier: GPL-2.0-only
// Generates a k-ary fat-tree of equal switches (Al-Fares, Loukissas, Vahdat: "A scalable, commodity
// data center network architecture", SIGCOMM 2008), with two or three tiers, full or oversubscribed
// at the leaves. NICs fill the leaves in order, so a server's NICs share a leaf where they fit.
//
//   three tiers, radix k, 1:1: k pods of k/2 leaves and k/2 spines, (k/2)² cores, k³/4 NICs
//   pod<p>/leaf<l> ──LEAF_SPINE── pod<p>/spine<s> ──SPINE_CORE── core<s·k/2 + 0..k/2-1>
//
//   two tiers: k leaves, k/2 spines, k²/2 NICs: leaf<l> ──LEAF_SPINE── every spine<s>
//
// With oversubscription o, a leaf uses o/(o+1) of its ports for NICs and the rest for spines; the
// other tiers stay 1:1. `leaf_spine.count` and `spine_core.count` cables form a bundle and use as
// many ports; there are that many times fewer spines or cores.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct FatTreeSpec {
  NetworkSpec network{};
  uint32_t radix = 64;
  uint32_t tiers = 3;
  uint32_t oversubscription = 1;
  std::optional<uint32_t> pods{};  // with three tiers; if absent, as few as the servers need
  LinkSpec leaf_spine{};
  LinkSpec spine_core{};
};

std::vector<SpecProblem> CheckFatTree(const FatTreeSpec& spec);
// Precondition: CheckFatTree(spec) is empty.
FabricGraph MakeFatTree(const FatTreeSpec& spec);

}  // namespace railyard
