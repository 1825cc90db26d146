// SPDX-License-Identifier: GPL-2.0-only
// Converts packets of the fabric to arguments of trace sources.
#pragma once

#include <optional>
#include <string_view>

#include "railyard/ns3/trace_events.h"
#include "simulator/fabric/fabric_network.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

std::string_view PacketKindName(PacketKind kind);  // "NETWORK_DATA", …

// Returns the event for a packet that is on its link or waits for it.
PacketEvent EventOf(const Packet& packet, const FabricNetwork& network, const FabricGraph& graph,
                    std::optional<DropReason> loss);

}  // namespace railyard
