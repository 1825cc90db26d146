// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Receives packets. A packet belongs to the network until the sink frees it or sends it on. The
// network frees a dropped packet after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // Called when a packet has arrived at a NIC from the wire.
  virtual void OnPacketAtNic(PacketId packet) = 0;
  // Called when a packet has arrived in a GPU's or a host's memory, at the end of its path.
  virtual void OnPacketInMemory(PacketId packet) = 0;
  // Called when a packet is dropped; `link` is LinkId::kNone if it had no path.
  virtual void OnPacketDropped(PacketId packet, DropReason reason, LinkId link) = 0;
  // Called when a link out of a NIC or GPU is no longer held (FabricNetwork::IsHeld).
  virtual void OnLinkReleased(LinkId /*link*/) {}
};

}  // namespace railyard
