// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ns3/object.h>

#include "simulator/state/state_archive.h"
#include "simulator/transport/congestion/queue_pair_control.h"

namespace railyard {

// Decides how fast, or how far ahead, queue pairs send: their data, not their clear-to-send
// elements, ACKs and CNPs. One object serves all queue pairs of a run, its state in arrays by their
// number. Time passes between calls only, so whatever a control's timers would have done since the
// last call is to be done at the next, as of then: there are no timer events.
//
// A queue pair without limits is not asked for: OnSend() comes only while its rate is limited.
class CongestionControl : public ns3::Object {
 public:
  using Needs = CongestionNeeds;

  static ns3::TypeId GetTypeId();

  virtual Needs needs() const = 0;
  // Queue pairs are opened in the order of their numbers, 0 first.
  void Open(const ControlledQueuePair& queue_pair);
  virtual void OnSend(uint32_t queue_pair, int64_t now_ps, uint32_t wire_bytes);
  virtual void OnAcknowledged(uint32_t queue_pair, const AckInfo& ack);
  virtual void OnCnp(uint32_t queue_pair, int64_t now_ps);
  // A NACK asked for a repetition; the retransmission timer ran out.
  virtual void OnNack(uint32_t queue_pair, int64_t now_ps);
  virtual void OnTimeout(uint32_t queue_pair, int64_t now_ps);

  const SendLimits& limits(uint32_t queue_pair) const { return limits_[queue_pair]; }
  // Why nothing that crosses the network under this control is taken from the replay cache: it
  // keeps something of all that a queue pair has met. Empty: Visit() shows all that decides what
  // comes, and at rest a queue pair is without limits.
  virtual std::string WhyNeverReplayed() const = 0;
  // The state of a queue pair that waits for nothing; none is at rest where it is never replayed.
  virtual void Visit(uint32_t queue_pair, StateArchive& archive) = 0;

 protected:
  // A queue pair was added; its limits are none.
  virtual void OnOpen(uint32_t queue_pair) = 0;
  const ControlledQueuePair& properties(uint32_t queue_pair) const {
    return properties_[queue_pair];
  }
  void SetLimits(uint32_t queue_pair, const SendLimits& limits) { limits_[queue_pair] = limits; }

 private:
  std::vector<ControlledQueuePair> properties_;
  std::vector<SendLimits> limits_;
};

}  // namespace railyard
