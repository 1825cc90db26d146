// SPDX-License-Identifier: GPL-2.0-only
// The contract of what carries messages between servers. A transport is a folder with an
// implementation of this, and a stack (network_stack.h) that uses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/state/state_registry.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/units/identifier.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A flow of a transport, by number.
using FlowId = Identifier<struct FlowIdTag>;

// A link, and the part of a flow's payload that crosses it.
struct LinkShare {
  LinkId link = 0;
  double share = 1;
};

// How long a flow's recoveries from losses have taken so far.
struct RecoveryTimes {
  // From a loss, or from the repetition before, until the timer ran out.
  int64_t timeout_ps = 0;
  // From there, or from the loss to the request to repeat, until the loss was made good.
  int64_t retransmission_ps = 0;
  RecoveryTimes& operator+=(const RecoveryTimes& other) {
    timeout_ps += other.timeout_ps;
    retransmission_ps += other.retransmission_ps;
    return *this;
  }
};

// A message as its sender posts it.
struct PostedMessage {
  static PostedMessage OfData(uint64_t bytes) { return {.size = MessageSize::OfData(bytes)}; }

  MessageSize size;  // 0 bytes: a flag alone
  // The receiver does without up to so many millionths of the packets, but never without the last.
  uint32_t tolerance_ppm = 0;
  // A transport that buffers messages hands it to the receiver with the message.
  uint16_t label = 0;
};

// What a flow waits for, in words.
struct FlowStatus {
  bool is_under_way = false;             // something that was posted is not acknowledged
  std::string description{};             // "server1/nic3 -> server2/nic3 (12 data packets … )"
  std::vector<std::string> obstacles{};  // "leaf3>server1/nic3 is down"
};

// Flows of messages from one GPU to another. A sender posts a message once the receiver has granted
// it (unless the transport buffers messages) and has at most 8 messages that are not completed.
class Transport {
 public:
  virtual ~Transport() = default;

  // Opens a flow between two GPUs, by number. `entropy` is what hashes see of it; it must be a
  // function of what the flow connects. Returns the flow's number, dense from 0.
  virtual FlowId Open(const SinkRef& sink, uint32_t source_gpu, uint32_t destination_gpu,
                      uint64_t entropy) = 0;
  virtual void Post(FlowId flow, const PostedMessage& message) = 0;
  // The receiver takes one message more. With `tells_sender` the sender hears of it: OnGranted().
  virtual void Grant(FlowId flow, bool tells_sender) = 0;
  // Nothing of the flow is begun any more; what is under way arrives.
  virtual void Close(FlowId flow) = 0;

  // Whether messages are buffered at the receiver before they are granted: the sender need not wait
  // for grants, and each message hands its label over.
  virtual bool BuffersMessages() const { return false; }
  // The label of the message whose delivery is being told.
  virtual uint16_t LabelOfDelivered(FlowId /*flow*/) const { return 0; }

  // From now on the payload that comes into memory over the flow is counted apart: a watchdog must
  // not take it for a job's progress.
  virtual void CountPayload(FlowId /*flow*/) {}
  virtual uint64_t counted_payload_bytes() const { return 0; }

  // The fabric's routes changed.
  virtual void OnRoutesChanged() {}

  // The links that the payload crosses first to last, by one of the flow's ways; and over all ways.
  virtual std::vector<LinkId> LinksOf(FlowId flow) const = 0;
  virtual std::vector<LinkShare> LinkSharesOf(FlowId flow) const = 0;
  virtual RecoveryTimes RecoveryOf(FlowId /*flow*/, bool /*of_data*/) const { return {}; }
  virtual FlowStatus StatusOf(FlowId flow) const = 0;

  // The owner of the state that decides what comes once no message is under way. Null: nobody can
  // say what that is, and nothing of a run that uses the transport is replayed from the cache.
  virtual StateOwner* state() { return nullptr; }
};

}  // namespace railyard
