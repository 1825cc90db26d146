// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ns3/object.h>

#include "simulator/state/state_archive.h"
#include "simulator/transport/congestion/queue_pair_control.h"
#include "simulator/transport/contract/flow_owner.h"

namespace railyard {

// Is the base of congestion controls, which limit the rate or the window of queue pairs' data.
// Clear-to-send elements, ACKs and CNPs are not limited. There is one object per kind of NIC; it
// numbers all queue pairs of a run, keeps its state in arrays by their number, and is notified of
// those that NICs of its kind send. There are no timer events: each call first executes the timer
// expirations since the last call, with the times at which they would have happened.
//
// OnSend() is called only while a queue pair's rate is limited.
class CongestionControl : public ns3::Object {
 public:
  using Needs = CongestionNeeds;

  static ns3::TypeId GetTypeId();

  virtual Needs needs() const = 0;
  // Returns why the attributes contradict each other; empty if they do not.
  virtual std::string Contradiction() const { return {}; }
  // Adds a queue pair. Queue pairs must be opened in the order of their numbers, starting with 0.
  void Open(const ControlledQueuePair& queue_pair);
  virtual void OnSend(FlowId queue_pair, int64_t now_ps, uint32_t wire_bytes);
  virtual void OnAcknowledged(FlowId queue_pair, const AckInfo& ack);
  virtual void OnCnp(FlowId queue_pair, int64_t now_ps);
  // OnNack() is called when a NACK requests a retransmission, OnTimeout() when the retransmission
  // timer expires.
  virtual void OnNack(FlowId queue_pair, int64_t now_ps);
  virtual void OnTimeout(FlowId queue_pair, int64_t now_ps);

  const SendLimits& limits(FlowId queue_pair) const { return limits_[queue_pair]; }
  // Returns the reason why traffic under this control is never taken from the replay cache: it
  // keeps state that depends on the queue pair's whole history. If the result is empty, Visit()
  // must cover all state that decides the future, and a quiescent queue pair must have no limits.
  // The result must not change once a queue pair is open.
  virtual std::string WhyNeverReplayed() const = 0;
  // Visits the state of a quiescent queue pair. It is not called if traffic is never replayed. By
  // default it prevents replay, so a control that gives no reason must override it to be replayed.
  virtual void Visit(FlowId /*queue_pair*/, StateArchive& archive) { archive.Require(false); }

 protected:
  // Called when a queue pair was added; it has no limits yet.
  virtual void OnOpen(FlowId queue_pair) = 0;
  const ControlledQueuePair& properties(FlowId queue_pair) const { return properties_[queue_pair]; }
  void SetLimits(FlowId queue_pair, const SendLimits& limits) { limits_[queue_pair] = limits; }

 private:
  std::vector<ControlledQueuePair> properties_;
  std::vector<SendLimits> limits_;
};

}  // namespace railyard
