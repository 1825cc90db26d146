// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <functional>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns an equal graph, in which devices, cables and links have the same numbers.
FabricGraph CopyOf(const FabricGraph& fabric);

// Returns a graph with the same devices and the cables for which `keeps` returns true, renumbered,
// and without a timetable of circuits.
FabricGraph WithCables(const FabricGraph& fabric, const std::function<bool(uint32_t cable)>& keeps);

}  // namespace railyard
