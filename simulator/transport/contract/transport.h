// SPDX-License-Identifier: GPL-2.0-only
// Declares the interface of transports, which carry messages between servers. A new transport is a
// folder with an implementation of this interface, and a stack (network_stack.h) that uses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/state/state_registry.h"
#include "simulator/transport/contract/flow_owner.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/contract/message_size.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes a message as its sender posts it.
struct PostedMessage {
  static PostedMessage OfData(uint64_t bytes) { return {.size = MessageSize::OfData(bytes)}; }

  MessageSize size;  // 0 bytes: a flag alone
  // The receiver can go without this share of the packets, in millionths. The last packet is always
  // needed.
  uint32_t tolerance_ppm = 0;
  // A transport that buffers messages passes this label to the receiver with the message.
  uint16_t label = 0;
};

// Describes what a flow waits for.
struct FlowStatus {
  bool is_under_way = false;             // posted data or grants are not acknowledged
  std::string description{};             // "server1/nic3 -> server2/nic3 (12 data packets … )"
  std::vector<std::string> obstacles{};  // "leaf3>server1/nic3 is down"
};

// Declares a transport, which carries flows of messages from one GPU to another. A sender may post
// a message when the receiver has granted it (unless the transport buffers messages) and fewer than
// 8 messages are incomplete. A transport whose messages do not cross the network in packets reports
// their payload to FlowAccounts::CountInjected() and CountDelivered(). The results, the
// check of bytes and the watchdog use these counts.
class Transport : public FlowOwner {
 public:
  // Opens a flow between two GPUs, given by number, and returns the flow's number, dense from 0.
  // `entropy` is the input of hashes and must be a function of the flow's ends and use.
  virtual FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
                      uint64_t entropy) = 0;
  // Appends a message to the flow.
  virtual void Post(FlowId flow, const PostedMessage& message) = 0;
  // Grants one more message to the sender. With `tells_sender` the grant is sent to it, and its
  // sink receives OnGranted().
  virtual void Grant(FlowId flow, bool tells_sender) = 0;
  // Stops the flow from starting anything more. Packets in flight still arrive.
  void Close(FlowId flow) override = 0;

  // Returns the number of parts of a message of this size of which each completes on its own at
  // both ends, so that proxies process as many completions; 0 if the message completes as a whole.
  virtual uint32_t CompletedParts(FlowId /*flow*/, uint64_t /*bytes*/) const { return 0; }

  // Returns whether the receiver buffers messages before they are granted. If so, the sender need
  // not wait for grants, and each message carries its label.
  virtual bool BuffersMessages() const { return false; }
  // Returns the label of the message for which OnDelivered() is being called.
  virtual uint16_t LabelOfDelivered(FlowId /*flow*/) const { return 0; }

  // Counts the flow's delivered payload separately from now on, because a watchdog must not take it
  // for progress of the job. The next function returns the sum.
  virtual void CountPayload(FlowId /*flow*/) {}
  virtual uint64_t counted_payload_bytes() const { return 0; }

  // Must be called when the fabric's routes have changed.
  virtual void OnRoutesChanged() {}

  // Returns whether packets of the flow, of any kind, were lost and the loss is not repaired yet;
  // OnLossRecovered() is called when it is. A flow that has failed has no such loss.
  virtual bool HasUnrepairedLoss(FlowId /*flow*/) const { return false; }
  virtual FlowStatus StatusOf(FlowId flow) const = 0;

  // Returns the owner of the state that decides the future when no message is in flight. Null means
  // that this state is unknown, so nothing of a run with this transport is replayed from the cache.
  virtual StateOwner* state() { return nullptr; }
};

}  // namespace railyard
