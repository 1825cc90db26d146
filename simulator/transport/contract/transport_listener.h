// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Whom the transports tell what became of messages. `connection` is what the opener named it.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  // The oldest message not yet delivered is in the receiver's memory.
  virtual void OnMessageDelivered(uint32_t connection) = 0;
  // Of a message to be delivered soon a first part is there: for fetching ahead what that touches
  // (NVLink only, not of groups).
  virtual void OnMessageUnderWay(uint32_t /*connection*/) {}
  // The oldest message not yet injected has left the sender's GPU at `left_ps`, now or soon
  // (NVLink only, not of groups).
  virtual void OnMessageInjected(uint32_t /*connection*/, int64_t /*left_ps*/) {}
  // The oldest message not yet completed was acknowledged as a whole (RDMA only).
  virtual void OnSendCompleted(uint32_t connection) = 0;
  // A clear-to-send element of the receiver is in the sender's memory (RDMA only).
  virtual void OnClearToSend(uint32_t connection) = 0;
  // A packet of the connection, of any kind, was lost to a link that is down or a missing route
  // (link UINT32_MAX).
  virtual void OnPacketLost(uint32_t connection, LinkId link) = 0;
  // A packet is sent again, data with so much payload (RDMA only).
  virtual void OnPacketRepeated(uint32_t /*connection*/, uint32_t /*payload_bytes*/) {}
  // The first packet after a loss is sent again; the loss was made good. Neither call may open
  // connections.
  virtual void OnRetransmission(uint32_t connection) = 0;
  virtual void OnLossRecovered(uint32_t connection) = 0;
  // What was sent by RdmaTransport::SendUnreliable() is there.
  virtual void OnUnreliableSend(uint32_t /*connection*/, bool /*at_receiver*/,
                                uint32_t /*immediate*/) {}
  // The connection is broken for good, which the end that was sending has found out: the sender of
  // its messages, or the receiver, of clear-to-send.
  virtual void OnConnectionError(uint32_t connection, bool at_sender, const std::string& why) = 0;
};

}  // namespace railyard
