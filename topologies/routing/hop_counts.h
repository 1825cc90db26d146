// SPDX-License-Identifier: GPL-2.0-only
// Computes shortest paths between GPUs over every device that forwards, NVLink relays included, by
// 64 breadth-first searches at a time, one per bit (Then et al.: "The more the merrier: efficient
// multi-source graph traversal", VLDB 2014).
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct HopCounts {
  uint32_t diameter = 0;  // largest distance from a source to a GPU that it reaches
  uint64_t hops_sum = 0;  // over all pairs of a source and another GPU that it reaches
  uint64_t reached_pairs = 0;
  uint64_t unreached_pairs = 0;
  // A pair without a path; meaningful only if there is one.
  DeviceId unreached_from{0};
  DeviceId unreached_to{0};
};

// Counts hops from each of `sources`, which are GPUs, to all GPUs.
HopCounts CountHops(const FabricGraph& fabric, const std::vector<DeviceId>& sources);

// Returns all GPUs if there are at most `most`, else `most` of them, evenly spaced.
std::vector<DeviceId> SampleGpus(const FabricGraph& fabric, size_t most);

}  // namespace railyard
