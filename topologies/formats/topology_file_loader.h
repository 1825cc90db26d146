// SPDX-License-Identifier: GPL-2.0-only
// Makes a checked FabricGraph from a railyard.protos.Topology, which lists a fabric device by
// device.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

inline constexpr int kMaxTopologyDevices = 1'000'000;
inline constexpr uint32_t kMaxLocalIndex = 1'023;
inline constexpr uint32_t kMaxLanes = 1'024;
inline constexpr uint32_t kMaxCircuitSlots = 65'536;

// Returns the fabric; `topology` is a cursor on a whole file. Returns nullopt after an error,
// including an error in the text that has been reported before; every mistake is a finding at the
// device or link that causes it.
std::optional<FabricGraph> LoadTopology(const ProtoCursor& topology, Diagnostics& diagnostics);

}  // namespace railyard
