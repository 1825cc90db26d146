// SPDX-License-Identifier: GPL-2.0-only
// What a transport tells those who use its flows.
#pragma once

#include <cstdint>
#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A user of flows. Every call names the flow by the number under which its user opened it. Calls
// come in the order of the flow's messages, one for each message.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // The oldest message that was not yet delivered is in the receiver's memory.
  virtual void OnDelivered(uint32_t number) = 0;
  // The first part of a message has arrived: the sink may fetch what its delivery will touch. Only
  // stores between two GPUs report it.
  virtual void OnUnderWay(uint32_t /*number*/) {}
  // The oldest message that was not yet injected leaves the sender's GPU at `left_ps`, now or soon.
  // Only stores between two GPUs report it.
  virtual void OnInjected(uint32_t /*number*/, int64_t /*left_ps*/) {}
  // The turn of a port in which OnInjected() was called is over: the sink may post.
  virtual void OnTurnEnded() {}
  // The sender may use the slot of its oldest message again: it was acknowledged as a whole, or
  // copied to a kernel's buffer.
  virtual void OnCompleted(uint32_t /*number*/) {}
  // The sender has seen that the receiver granted one message more.
  virtual void OnGranted(uint32_t /*number*/) {}
  // A packet of the flow, of any kind, was lost on `link`, or to a missing route (UINT32_MAX).
  virtual void OnPacketLost(uint32_t number, LinkId link) = 0;
  // A packet is sent again; `payload_bytes` is 0 unless it carries data.
  virtual void OnPacketRepeated(uint32_t /*number*/, uint32_t /*payload_bytes*/) {}
  // The first packet after a loss is sent again; the loss was made good. The sink must not open
  // flows in either call.
  virtual void OnRetransmission(uint32_t /*number*/) {}
  virtual void OnLossRecovered(uint32_t /*number*/) {}
  // A packet of an unreliable connection beside the flow has arrived.
  virtual void OnUnreliableSend(uint32_t /*number*/, bool /*at_receiver*/, uint32_t /*immediate*/) {
  }
  // The flow is broken for good. `at_sender` says which end has found out: the sender of messages,
  // or their receiver, who sends grants.
  virtual void OnFailed(uint32_t number, bool at_sender, const std::string& why) = 0;
};

// Whom a transport tells of a flow, and the number by which it calls the flow.
struct SinkRef {
  MessageSink* sink = nullptr;
  uint32_t number = 0;
};

}  // namespace railyard
