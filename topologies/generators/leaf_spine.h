// SPDX-License-Identifier: GPL-2.0-only
// Generates a leaf-spine network (folded Clos, Clos 1953) with top-of-rack placement: NICs fill the
// leaves in order, so that a server's NICs share a leaf where they fit.
//
//   nic ──NIC_LEAF── leaf<l> ──LEAF_SPINE (× leaf_spine.count)── every spine<s>
//
// With `planes` > 1 it is a multi-plane network (Zhao et al.: "Insights into DeepSeek-V3", ISCA
// 2025): `planes` leaf-spine networks side by side, with switches plane<p>/leaf<l> and
// plane<p>/spine<s>, and NIC i of a server in plane i mod planes. Planes meet only inside servers,
// over NVLink.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct LeafSpineSpec {
  NetworkSpec network{};
  uint32_t planes = 1;
  uint32_t nics_per_leaf = 32;
  std::optional<uint32_t> spines{};  // of a plane; if absent, as `oversubscription` allows
  uint32_t oversubscription = 1;     // has no effect with `spines`
  LinkSpec leaf_spine{};
};

std::vector<SpecProblem> CheckLeafSpine(const LeafSpineSpec& spec);
// Precondition: CheckLeafSpine(spec) is empty.
FabricGraph MakeLeafSpine(const LeafSpineSpec& spec);

}  // namespace railyard
