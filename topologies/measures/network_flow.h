// SPDX-License-Identifier: GPL-2.0-only
// Computes the capacity of a fabric between sets of GPUs as maximum flows (Boost.Graph,
// push-relabel).
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Holds a maximum flow and the number of nodes of the graph on which it was computed. Nodes that
// have equal links to equal nodes (the coarsest equitable partition, by colour refinement) are
// merged. The flow between unions of such classes equals that of the graph of classes, because
// every flow there spreads evenly over the members. The result is therefore exact, and a regular
// fabric of any size has few nodes.
struct MaxFlow {
  uint64_t bps = 0;
  uint32_t nodes = 0;    // of the fabric, with one node per server of either side
  uint32_t classes = 0;  // equal to `nodes` without symmetry
};

// Returns the most bits per second that the servers `from` can send to the servers `to` if GPUs do
// not limit them, over NVLink, NICs and switches. Other servers relay over NVLink. A server must
// not be in both sets.
MaxFlow MaxFlowBetween(const FabricGraph& fabric, const std::vector<ServerIndex>& from_servers,
                       const std::vector<ServerIndex>& to_servers);
uint64_t MaxFlowBps(const FabricGraph& fabric, const std::vector<ServerIndex>& from_servers,
                    const std::vector<ServerIndex>& to_servers);

// Returns the same between GPUs of a fabric of one server, in bits per second.
uint64_t MaxFlowBetweenGpusBps(const FabricGraph& fabric, const std::vector<DeviceId>& from,
                               const std::vector<DeviceId>& to);

// Returns the flow from servers 0..S/2-1 to the rest; in a fabric of one server, from GPUs 0..G/2-1
// to the rest; 0 for a single GPU.
MaxFlow Bisection(const FabricGraph& fabric);
uint64_t BisectionBps(const FabricGraph& fabric);

// Returns the smallest number of cables whose loss separates two GPUs, GPUs that relay included.
uint32_t EdgeConnectivity(const FabricGraph& fabric, DeviceId gpu_a, DeviceId gpu_b);

}  // namespace railyard
