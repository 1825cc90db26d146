// SPDX-License-Identifier: GPL-2.0-only
// Derives from a fabric of optical circuits the fabric that is connected during one slot.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// The shortest slot that is accepted. The fastest circuit switches ever built change over within
// nanoseconds (Ballani et al.: "Sirius", SIGCOMM 2020). A shorter slot is therefore refused as a
// mistake in the unit.
inline constexpr int64_t kSlotPsMin = 10 * kPsPerNs;

// Returns a graph of the same devices with the cables that are connected in `slot`. In it they are
// always connected, and they have new numbers. Precondition: `fabric` has circuits, and its
// timetable has the slot.
FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot);

// Returns the first slot in which the cables do not connect all GPUs. Precondition: `fabric` has
// circuits.
std::optional<uint32_t> FindPartedSlot(const FabricGraph& fabric);

}  // namespace railyard
