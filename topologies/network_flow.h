// SPDX-License-Identifier: GPL-2.0-only
// What a fabric can carry between sets of GPUs, as maximum flows (Boost.Graph, push-relabel).
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabric_graph.h"

namespace railyard {

// The most bits per second that the servers `from` can send to the servers `to` if their GPUs
// neither compute nor limit, over NVLink, NICs and switches, other servers relaying over NVLink.
// Servers in neither set relay too. A server must not be in both.
uint64_t MaxFlowBps(const FabricGraph& fabric, const std::vector<uint32_t>& from_servers,
                    const std::vector<uint32_t>& to_servers);

// The same between GPUs, for fabrics of one server.
uint64_t MaxFlowBetweenGpusBps(const FabricGraph& fabric, const std::vector<DeviceId>& from,
                               const std::vector<DeviceId>& to);

// Servers 0..S/2-1 against the rest; of a fabric of one server its GPUs 0..G/2-1 against the rest;
// 0 for a single GPU.
uint64_t BisectionBps(const FabricGraph& fabric);

// The fewest cables whose loss parts two GPUs, relaying GPUs included.
uint32_t EdgeConnectivity(const FabricGraph& fabric, DeviceId gpu_a, DeviceId gpu_b);

}  // namespace railyard
