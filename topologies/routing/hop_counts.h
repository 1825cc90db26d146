// SPDX-License-Identifier: GPL-2.0-only
// Shortest ways between GPUs over everything that forwards, NVLink relays included: 64
// breadth-first searches at a time, a bit each (Then et al.: "The more the merrier: efficient
// multi-source graph traversal", VLDB 2014).
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct HopCounts {
  uint32_t diameter = 0;  // most links on a shortest way from a source to any GPU it reaches
  uint64_t hops_sum = 0;  // over all pairs of a source and another GPU it reaches
  uint64_t reached_pairs = 0;
  uint64_t unreached_pairs = 0;
  // One of them; meaningful if there is any.
  DeviceId unreached_from = 0;
  DeviceId unreached_to = 0;
};

// From each of `sources`, GPUs, to all GPUs.
HopCounts CountHops(const FabricGraph& fabric, const std::vector<DeviceId>& sources);

// All GPUs where there are at most `most`, else `most` of them, evenly spaced.
std::vector<DeviceId> SampleGpus(const FabricGraph& fabric, size_t most);

}  // namespace railyard
