// SPDX-License-Identifier: GPL-2.0-only
// A fabric as a file for other programs, by Boost.Graph's writers. Every attribute is kept: what
// GraphML gives back is the same fabric, GPUs and cables in the same order.
#pragma once

#include <string>

#include "topologies/fabric_graph.h"

namespace railyard {

std::string ToGraphMl(const FabricGraph& fabric);
// Graphviz; for pictures, with a shape per kind of device and a colour per tier.
std::string ToDot(const FabricGraph& fabric);

}  // namespace railyard
