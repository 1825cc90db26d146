// SPDX-License-Identifier: GPL-2.0-only
// A fabric's devices and cables as JSON, for programs that draw.
#pragma once

#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// {"name", "nodes": [{"name", "kind", "server", "layer"}], "links": [{"source", "target", "tier",
// "rate_bps", "cables"}]}; source and target are positions in nodes, parallel cables one link.
// Layers are for drawing from the bottom: 0 GPUs, 1 NVSwitches and NICs, then switches by how many
// cables they are from the nearest NIC.
std::string PictureJson(const FabricGraph& fabric);

}  // namespace railyard
