// SPDX-License-Identifier: GPL-2.0-only
// Defines the identifiers of the parts of a FabricGraph.
#pragma once

#include "simulator/units/identifier.h"
#include "simulator/units/server_index.h"

namespace railyard {

// Identifies a device; it is the descriptor of a vertex.
using DeviceId = Identifier<struct DeviceTag>;
// Identifies a directed link by a dense index, in the order of creation.
using LinkId = Identifier<struct LinkTag>;
// Identifies a GPU by its place in FabricGraph::gpus().
using GpuIndex = Identifier<struct GpuTag>;

}  // namespace railyard
