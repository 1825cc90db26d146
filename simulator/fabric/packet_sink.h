// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/fabric/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Receives packets. A packet handed over stays the network's until the sink frees it or sends
// it on; a dropped one is freed by the network after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // At a NIC, from the wire.
  virtual void OnPacketAtNic(uint32_t packet) = 0;
  // In a GPU's or a host's memory, at the end of its path.
  virtual void OnPacketInMemory(uint32_t packet) = 0;
  virtual void OnPacketDropped(uint32_t packet, DropReason reason, LinkId link) = 0;
  // A link out of a NIC or GPU that was held (FabricNetwork::IsHeld) is so no more.
  virtual void OnLinkReleased(LinkId /*link*/) {}
};

}  // namespace railyard
