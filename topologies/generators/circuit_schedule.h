// SPDX-License-Identifier: GPL-2.0-only
// A fabric of optical circuits at one time.
#pragma once

#include <cstdint>

#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// The fastest circuit switches that were built change over within nanoseconds (Ballani et al.:
// "Sirius", SIGCOMM 2020). Shorter slots are therefore refused as a mistake in the unit.
inline constexpr int64_t kSlotPsMin = 10 * kPsPerNs;

// Returns the same devices with the cables of one configuration, all of which are always connected
// and have new numbers. Precondition: `fabric` has circuits and the slot.
FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot);

}  // namespace railyard
