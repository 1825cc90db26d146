// SPDX-License-Identifier: GPL-2.0-only
// Failure and recovery of the ports of striped connections.
#include <algorithm>
#include <utility>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/transport/connections/striped_connections.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

// Size of the receiver's record of a message, which a sender reads: a flag for each possible queue
// pair (NCCL_IB_MAX_QPS).
constexpr uint32_t kRecordBytes = 128;

}  // namespace

void StripedConnections::OnFailed(uint32_t number, bool at_sender, const FlowError& error) {
  const Use& use = uses_[number];
  Stripe& stripe = stripes_[use.stripe];
  // A lost probe always counts as the sender's, in whichever direction it was lost.
  at_sender = at_sender || use.is_probe;
  End& end = at_sender ? stripe.sender : stripe.receiver;
  if (end.has_failed[use.device]) return;
  const bool others_work = std::count(end.has_failed.begin(), end.has_failed.end(), true) == 0 &&
                           stripe.device_count > 1;
  if (!settings_.port_failover || !others_work || !error.is_unanswered) {
    stripe.has_failed = true;
    stripe.user.sink->OnFailed(stripe.user.number, at_sender, error);
    return;
  }
  ++counters_.failovers;
  end.has_failed[use.device] = true;
  ReplaceQueuePairs(stripe, at_sender, use.device);
  if (at_sender) {
    AskForWhatIsMissing(use.stripe, use.device);
  } else {
    GrantAgain(stripe, use.device);
  }
  if (settings_.port_recovery) RecoveryOfPort(use.stripe, use.device).Begin(at_sender);
}

// Replaces the queue pairs of a failed device at one end by the next queue pairs on other devices.
void StripedConnections::ReplaceQueuePairs(Stripe& stripe, bool at_sender, uint32_t device) {
  End& end = at_sender ? stripe.sender : stripe.receiver;
  const auto count = static_cast<uint32_t>(stripe.uses.size());
  for (uint32_t place = device; place < count; place += stripe.device_count) {
    Use& use = uses_[stripe.uses[place]];
    (at_sender ? use.is_dead_at_sender : use.is_dead_at_receiver) = true;
    rdma_.SetError(use.queue_pair, at_sender);
    uint32_t other = place;
    while (end.has_failed[other % stripe.device_count]) other = (other + 1) % count;
    end.active[place] = stripe.uses[other];
  }
}

void StripedConnections::GrantAgain(Stripe& stripe, uint32_t device) {
  for (uint32_t place = device; place < stripe.uses.size(); place += stripe.device_count) {
    const std::deque<uint64_t> lost = std::exchange(uses_[stripe.uses[place]].granting, {});
    for (const uint64_t number : lost) {
      bool& is_repair = stripe.grants[number - stripe.first_grant].is_repair;
      if (!std::exchange(is_repair, true)) ++stripe.repairs;
      SendGrant(stripe, number);
    }
  }
  ReportIfRepaired(stripe);
}

// A queue pair that a failover replaced has only losses that are repairs, from the answer to the
// probe on.
bool StripedConnections::IsUnrepaired(const Stripe& stripe) const {
  const bool has_lost_part =
      std::ranges::any_of(stripe.messages.open, [this](const Message& message) {
        return std::ranges::any_of(message, [this](const Part& part) { return IsLost(part); });
      });
  return stripe.has_failed || stripe.repairs > 0 || has_lost_part ||
         std::ranges::any_of(stripe.uses, [this](uint32_t id) {
           const Use& use = uses_[id];
           return !use.is_dead_at_sender && !use.is_dead_at_receiver &&
                  rdma_.HasUnrepairedLoss(use.queue_pair);
         });
}

void StripedConnections::ReportIfRepaired(const Stripe& stripe) {
  if (!IsUnrepaired(stripe)) stripe.user.sink->OnLossRecovered(stripe.user.number);
}

bool StripedConnections::IsLost(const Part& part) const {
  return !part.is_acknowledged && uses_[part.use].is_dead_at_sender;
}

void StripedConnections::AskForWhatIsMissing(FlowId id, uint32_t device) {
  Stripe& stripe = stripes_[id];
  for (uint32_t place = device; place < stripe.uses.size(); place += stripe.device_count) {
    uses_[stripe.uses[place]].sending.clear();
  }
  std::vector<uint64_t> messages;
  const InOrderReports<Message>& posted = stripe.messages;
  for (uint64_t number = posted.first_number; number < posted.end_number(); ++number) {
    const Message& message = posted.at(number);
    if (std::any_of(message.begin(), message.end(),
                    [this](const Part& part) { return IsLost(part); })) {
      messages.push_back(number);
    }
  }
  if (messages.empty()) return;
  stripe.failover_since_ps = engine_.NowPs();
  After(id, settings_.failover_probe_delay_ps, [this, id, messages] { Probe(id, messages); });
}

// Reads the receiver's record of each message: a request as long as a write without payload, and an
// answer. They use a separate queue pair over the first working device.
void StripedConnections::Probe(FlowId id, const std::vector<uint64_t>& messages) {
  Stripe& stripe = stripes_[id];
  uint32_t device = 0;
  while (stripe.sender.has_failed[device]) ++device;
  uint32_t& probe = stripe.probes[device];
  if (probe == kNone) {
    probe = OpenUse(id, device, Mix64(~EntropyOf(stripe, device)));
    uses_[probe].is_probe = true;
  }
  Use& use = uses_[probe];
  for (const uint64_t number : messages) {
    use.arriving.push_back({.message = number});
    rdma_.PostReceives(use.queue_pair, 1);
    rdma_.Post(use.queue_pair, {});
  }
}

// Handles a probe at the receiver. Parts that have not arrived by now are sent again, and only the
// new attempt counts.
void StripedConnections::OnProbe(Use& use, uint64_t number) {
  for (Part& part : stripes_[use.stripe].messages.at(number)) {
    if (IsLost(part) && !part.is_delivered) ++part.attempt;
  }
  use.granting.push_back(number);
  rdma_.PostToSender(use.queue_pair, kRecordBytes);
}

void StripedConnections::OnProbeAnswer(Use& use, uint64_t number) {
  Stripe& stripe = stripes_[use.stripe];
  if (stripe.failover_since_ps >= 0) {
    stripe.past_of_data.retransmission_ps += engine_.NowPs() - stripe.failover_since_ps;
    stripe.failover_since_ps = -1;
  }
  for (uint32_t index = 0; index < stripe.per_message; ++index) {
    Part& part = stripe.messages.at(number)[index];
    if (!IsLost(part)) continue;
    if (part.is_delivered) {
      part.is_acknowledged = true;
    } else {
      if (!std::exchange(part.is_repair, true)) ++stripe.repairs;
      stripe.user.sink->OnPacketRepeated(stripe.user.number,
                                         static_cast<uint32_t>(part.size.data_bytes));
      SendPart(stripe, number, index);
    }
  }
  ReportIfRepaired(stripe);
  Report(stripe);
}

// --- Recovery ------------------------------------------------------------------------------------

PortRecovery& StripedConnections::RecoveryOfPort(FlowId id, uint32_t device) {
  std::unique_ptr<PortRecovery>& recovery = stripes_[id].recoveries[device];
  if (recovery) return *recovery;
  recovery = std::make_unique<PortRecovery>(
      settings_,
      PortRecovery::Hooks{
          .send =
              [this, id, device](bool to_receiver, uint32_t immediate) {
                const Use& use = uses_[stripes_[id].uses[device]];
                rdma_.SendUnreliable(use.queue_pair, to_receiver, immediate);
              },
          .after = [this, id](int64_t delay_ps,
                              std::function<void()> what) { After(id, delay_ps, std::move(what)); },
          .now_ps = [this] { return engine_.NowPs(); },
          .renew_queue_pairs = [this, id, device] { RenewQueuePairs(id, device); },
          .put_back = [this, id, device](bool at_sender) { PutBack(id, at_sender, device); }});
  return *recovery;
}

void StripedConnections::OnUnreliableSend(uint32_t number, bool at_receiver, uint32_t immediate) {
  const Use& use = uses_[number];
  if (stripes_[use.stripe].is_closed) return;
  RecoveryOfPort(use.stripe, use.device).OnMessage(at_receiver, immediate);
}

// Queue pairs that either end has put into the error state are reset, which renews them.
void StripedConnections::RenewQueuePairs(FlowId id, uint32_t device) {
  Stripe& stripe = stripes_[id];
  for (uint32_t place = device; place < stripe.uses.size(); place += stripe.device_count) {
    const Use& old = uses_[stripe.uses[place]];
    if (!old.is_dead_at_sender && !old.is_dead_at_receiver) continue;
    stripe.past_of_data += rdma_.RecoveryOf(old.queue_pair, true);
    stripe.past_of_grants += rdma_.RecoveryOf(old.queue_pair, false);
    rdma_.SetError(old.queue_pair, true);
    rdma_.SetError(old.queue_pair, false);
    stripe.uses[place] = OpenUse(id, device, EntropyOf(stripe, place));
  }
}

void StripedConnections::PutBack(FlowId id, bool at_sender, uint32_t device) {
  Stripe& stripe = stripes_[id];
  End& end = at_sender ? stripe.sender : stripe.receiver;
  ++counters_.recoveries;
  end.has_failed[device] = false;
  for (uint32_t place = device; place < stripe.uses.size(); place += stripe.device_count) {
    end.active[place] = stripe.uses[place];
  }
}

// --- Time ----------------------------------------------------------------------------------------

void StripedConnections::After(FlowId id, int64_t delay_ps, std::function<void()> what) {
  std::erase_if(events_, [](const ns3::EventId& event) { return event.IsExpired(); });
  events_.push_back(ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(delay_ps)),
                                             [this, id, what = std::move(what)] {
                                               if (!stripes_[id].is_closed) what();
                                             }));
}

void StripedConnections::Close(FlowId id) {
  stripes_[id].is_closed = true;
  for (const Use& use : uses_) {
    if (use.stripe == id) rdma_.Close(use.queue_pair);
  }
}

StripedConnections::~StripedConnections() {
  for (ns3::EventId& event : events_) event.Cancel();
}

}  // namespace railyard
