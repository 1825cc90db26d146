// SPDX-License-Identifier: GPL-2.0-only
// Identifiers of the parts of a FabricGraph.
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Descriptor of a vertex.
using DeviceId = Identifier<struct DeviceTag>;
// Dense index of a directed link, in the order of creation.
using LinkId = Identifier<struct LinkTag>;
// Place among FabricGraph::gpus().
using GpuIndex = Identifier<struct GpuTag>;

}  // namespace railyard
