// SPDX-License-Identifier: GPL-2.0-only
// A fabric as a file: protobuf text, and for other programs what Boost.Graph's writers make of it.
// Text and GraphML keep every attribute: what is read back is the same fabric, GPUs and cables in
// the same order.
#pragma once

#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A railyard.protos.Topology.
std::string ToTopologyText(const FabricGraph& fabric);
std::string ToGraphMl(const FabricGraph& fabric);
// Graphviz: a picture, with a shape per kind of device and a colour per tier, and all that reading
// it as a fabric takes.
std::string ToDot(const FabricGraph& fabric);

}  // namespace railyard
