// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <functional>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns a graph that is equal in all, its numbers of devices, cables and links included.
FabricGraph CopyOf(const FabricGraph& fabric);

// Returns a graph with the same devices and those cables that `keeps` says, renumbered, and without
// the schedule of its circuits.
FabricGraph WithCables(const FabricGraph& fabric, const std::function<bool(uint32_t cable)>& keeps);

}  // namespace railyard
