// SPDX-License-Identifier: GPL-2.0-only
// Declares the callbacks of transports to the users of their flows.
#pragma once

#include <cstdint>
#include <string>

#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes the loss of a packet of a flow.
struct FlowLoss {
  DropReason reason{};
  LinkId link = LinkId::kNone;  // on which it was lost; kNone: it had no route
  // Something will be sent again. It is not for notifications of congestion, for messages without
  // acknowledgement, and for acknowledgements of what the sender knows.
  bool needs_repair = true;
};

// Says why a flow failed permanently.
struct FlowError {
  // The other end does not answer. Another path, if there is one, may reach it.
  bool is_unanswered = false;
  std::string why;
};

// Declares the callbacks that a user of flows implements. Each callback identifies the flow by the
// number under which its user opened it. OnDelivered(), OnInjected(), OnCompleted() and OnGranted()
// are called in the order of the flow's messages, at most once for each.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // Called when the oldest undelivered message is in the receiver's memory.
  virtual void OnDelivered(uint32_t number) = 0;
  // Called when a packet has arrived that does not complete its message, so that the sink can
  // prefetch the records it needs for the delivery. Only stores and loads inside a server report
  // it.
  virtual void OnUnderWay(uint32_t /*number*/) {}
  // Called when it is known that the oldest message not yet injected leaves the sender's GPU at
  // `left_ps`, which may lie in the future. Only stores into the memory of one GPU or host report
  // it.
  virtual void OnInjected(uint32_t /*number*/, int64_t /*left_ps*/) {}
  // Called when the port's turn that called OnInjected() is over. The sink may post again.
  virtual void OnTurnEnded() {}
  // Called when the sender may reuse the slot of its oldest message, because the message was
  // acknowledged completely or copied into a kernel buffer.
  virtual void OnCompleted(uint32_t /*number*/) {}
  // Called when the sender has received one more grant of the receiver.
  virtual void OnGranted(uint32_t /*number*/) {}
  // Called when a packet of the flow, of any kind, was lost.
  virtual void OnPacketLost(uint32_t number, const FlowLoss& loss) = 0;
  // Called when a packet is sent again. `payload_bytes` is 0 unless the packet carries data.
  virtual void OnPacketRepeated(uint32_t /*number*/, uint32_t /*payload_bytes*/) {}
  // Called when the first packet after a loss is sent again, and when all losses of the flow have
  // been repaired.
  // The sink must not open flows in either call.
  virtual void OnRetransmission(uint32_t /*number*/) {}
  virtual void OnLossRecovered(uint32_t /*number*/) {}
  // Called when a packet of an unreliable connection beside the flow has arrived.
  virtual void OnUnreliableSend(uint32_t /*number*/, bool /*at_receiver*/, uint32_t /*immediate*/) {
  }
  // Called when the flow has failed permanently. `at_sender` tells which end has detected it: the
  // sender of messages, or their receiver, which sends grants.
  virtual void OnFailed(uint32_t number, bool at_sender, const FlowError& error) = 0;
};

// Names the sink that receives a flow's callbacks, and the number by which they identify the flow.
struct SinkRef {
  MessageSink* sink = nullptr;
  uint32_t number = 0;
};

}  // namespace railyard
