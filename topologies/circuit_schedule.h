// SPDX-License-Identifier: GPL-2.0-only
// A fabric of optical circuits at one time.
#pragma once

#include <cstdint>

#include "topologies/fabric_graph.h"

namespace railyard {

// The fabric with the cables of one configuration, which then are always there; the same devices,
// cables renumbered. Precondition: `fabric` has circuits and the slot.
FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot);

}  // namespace railyard
