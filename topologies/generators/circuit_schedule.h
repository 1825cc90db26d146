// SPDX-License-Identifier: GPL-2.0-only
// A fabric of optical circuits at one time.
#pragma once

#include <cstdint>

#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// The fastest circuit switches that were built change over in some nanoseconds (Ballani et al.:
// "Sirius", SIGCOMM 2020): shorter slots are a slip of the unit.
inline constexpr int64_t kSlotPsMin = 10 * kPsPerNs;

// The fabric with the cables of one configuration, which then are always there; the same devices,
// cables renumbered. Precondition: `fabric` has circuits and the slot.
FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot);

}  // namespace railyard
