// SPDX-License-Identifier: GPL-2.0-only
// What a fabric can carry between sets of GPUs, as maximum flows (Boost.Graph, push-relabel).
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A maximum flow, and of how many nodes it was computed. Nodes that have equal links to equal nodes
// (the coarsest equitable partition, by colour refinement) are one: the flow between unions of such
// classes is that of the graph of classes, for every flow there spreads evenly over their members.
// So it is exact with fewer nodes, and a regular fabric of any size has few.
struct MaxFlow {
  uint64_t bps = 0;
  uint32_t nodes = 0;    // of the fabric, servers of either side one node each
  uint32_t classes = 0;  // as many if nothing is alike
};

// The most bits per second that the servers `from` can send to the servers `to` if their GPUs
// neither compute nor limit, over NVLink, NICs and switches, other servers relaying over NVLink.
// Servers in neither set relay too. A server must not be in both.
MaxFlow MaxFlowBetween(const FabricGraph& fabric, const std::vector<uint32_t>& from_servers,
                       const std::vector<uint32_t>& to_servers);
uint64_t MaxFlowBps(const FabricGraph& fabric, const std::vector<uint32_t>& from_servers,
                    const std::vector<uint32_t>& to_servers);

// The same between GPUs, for fabrics of one server.
uint64_t MaxFlowBetweenGpusBps(const FabricGraph& fabric, const std::vector<DeviceId>& from,
                               const std::vector<DeviceId>& to);

// Servers 0..S/2-1 against the rest; of a fabric of one server its GPUs 0..G/2-1 against the rest;
// 0 for a single GPU.
MaxFlow Bisection(const FabricGraph& fabric);
uint64_t BisectionBps(const FabricGraph& fabric);

// The fewest cables whose loss parts two GPUs, relaying GPUs included.
uint32_t EdgeConnectivity(const FabricGraph& fabric, DeviceId gpu_a, DeviceId gpu_b);

}  // namespace railyard
