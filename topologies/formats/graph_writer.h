// SPDX-License-Identifier: GPL-2.0-only
// Writes a fabric as protobuf text, GraphML or Graphviz (the latter two with Boost.Graph's
// writers). Text and GraphML keep every attribute: reading them back gives the same fabric, with
// GPUs and cables in the same order.
#pragma once

#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns the text of a railyard.protos.Topology.
std::string ToTopologyText(const FabricGraph& fabric);
std::string ToGraphMl(const FabricGraph& fabric);
// Returns Graphviz's DOT: a picture with a shape per kind of device and a colour per tier, and
// every attribute that is needed to read it back as a fabric.
std::string ToDot(const FabricGraph& fabric);

}  // namespace railyard
