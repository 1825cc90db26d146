// SPDX-License-Identifier: GPL-2.0-only
// Writes a server of a fabric as NCCL's topology XML (topologies/formats/nccl_topology_loader.h).
#pragma once

#include <cstdint>
#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// With made-up PCIe addresses. Returns why the server cannot be said in that form ("gpu0 has no
// NIC"); empty if it can.
std::string ToNcclTopology(const FabricGraph& fabric, uint32_t server, std::string& text);

}  // namespace railyard
