// SPDX-License-Identifier: GPL-2.0-only
// Writes a server of a fabric as NCCL's topology XML (topologies/formats/nccl_topology_loader.h).
#pragma once

#include <cstdint>
#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Writes the server with made-up PCIe addresses into `text`. Returns why the format cannot describe
// the server ("gpu0 has no NIC"); empty on success.
std::string ToNcclTopology(const FabricGraph& fabric, ServerIndex server, std::string& text);

}  // namespace railyard
