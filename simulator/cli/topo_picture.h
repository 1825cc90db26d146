// SPDX-License-Identifier: GPL-2.0-only
// Writes a fabric's devices and cables as JSON, for programs that draw.
#pragma once

#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns {"name", "nodes": [{"name", "kind", "server", "layer"}], "links": [{"source", "target",
// "tier", "rate_bps", "cables"}]}; source and target are positions in nodes, and parallel cables
// are one link. Layers are counted from the bottom: 0 for GPUs, 1 for NVSwitches and NICs, then
// switches by their distance in cables from the nearest NIC.
std::string PictureJson(const FabricGraph& fabric);

}  // namespace railyard
