// SPDX-License-Identifier: GPL-2.0-only
// What the transports say of messages, and which lane that concerns.
#include <algorithm>
#include <string>

#include "simulator/event_order/event_order.h"
#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

void LaneExecutor::OnNetworkArrival(uint32_t id) {
  MessageSlots& slots = table_.slots(id);
  if (slots.is_closed) [[unlikely]]
    return;
  const Connection& connection = table_.connection(id);
  const int64_t seen_ps =
      ProxySeenPs(connection.to_gpu) + costs_[slots.costs].costs.LatencyAfterArrivalPs();
  if (paths_) [[unlikely]]
    paths_->OnArrived(id, slots.delivered % kConnectionSlots, seen_ps);
  // Buffers may hold more messages than there are slots: the size comes with each.
  if (connection.is_buffered) [[unlikely]] {
    slots.sizes[slots.delivered % kConnectionSlots] =
        connection.transport->LabelOfDelivered(connection.flow);
  }
  slots.time_ps[slots.delivered++ % kConnectionSlots] = seen_ps;
  WakeReceiver(slots, seen_ps);
  RunWoken();
}

// A message is in the memory of the receiver, or of the GPU that relays it; the sender's copy may
// still be at work. The flags that follow it alone are seen behind it.
void LaneExecutor::OnStoreArrival(uint32_t id) {
  MessageSlots& slots = table_.slots(id);
  const StepCosts& costs = costs_[slots.costs].costs;
  // With Simple a flag follows the data; lines of LL and LL128 carry theirs and are taken as they
  // come. Operands for a switch stay where they are: nothing but the flag moves.
  const bool has_flag =
      costs_[slots.costs].line_payload_bytes == 1 || table_.connection(id).is_switch_operand;
  const auto here_after = [&](int64_t here_ps, int64_t written_ps, bool is_empty) {
    const int64_t seen_ps = written_ps + (is_empty || has_flag ? slots.flag_latency_ps : 0);
    return std::max({here_ps, seen_ps, engine_.NowPs()});
  };
  int64_t here_ps = 0;
  if (slots.network) {
    const StagedMessages& staged = table_.staged(table_.connection(id));
    uint8_t& relayed = slots.progress.relayed;
    do {
      const uint32_t slot = relayed++ % kConnectionSlots;
      here_ps = here_after(here_ps, staged.time_ps[slot], staged.bytes[slot] == 0);
      if (paths_) [[unlikely]]
        paths_->OnStored(id, slot, here_ps);
      SchedulePost(here_ps + costs.LatencyBeforePostPs(), id, PostPhase::kStaged);
    } while (relayed != slots.posted && staged.bytes[relayed % kConnectionSlots] == 0);
    return;
  }
  int64_t first_seen_ps = kNeverPs;
  do {
    const uint32_t slot = slots.delivered++ % kConnectionSlots;
    here_ps = here_after(here_ps, slots.time_ps[slot], slots.sizes[slot] == 0);
    slots.time_ps[slot] = here_ps + costs.nvlink_step_latency_ps;
    if (paths_) [[unlikely]]
      paths_->OnSeen(id, slot, slots.time_ps[slot]);
    first_seen_ps = std::min(first_seen_ps, slots.time_ps[slot]);
  } while (slots.delivered != slots.posted && slots.sizes[slots.delivered % kConnectionSlots] == 0);
  WakeReceiver(slots, first_seen_ps);
}

// A lane that waits for data cannot start before it is seen; whether it can send then is looked at
// then.
void LaneExecutor::WakeReceiver(MessageSlots& slots, int64_t seen_ps) {
  if (!slots.receiver_waits) return;
  slots.receiver_waits = false;
  const int64_t start_ps = std::max(seen_ps, slots.receiver_free_ps);
  if (start_ps > engine_.NowPs()) {
    engine_.ScheduleFabric(start_ps, event_order::kChannel, slots.receiver_tie, slots.receiver);
  } else {
    Wake(slots.receiver);
  }
}

void LaneExecutor::WakeSender(MessageSlots& slots) {
  if (!slots.sender_waits) return;
  slots.sender_waits = false;
  Wake(slots.sender);
}

void LaneExecutor::OnInjected(uint32_t id, int64_t left_ps) {
  const uint32_t sender = table_.slots(id).sender;
  Lane& lane = lanes_[sender];
  lane.free_ps = std::max(lane.free_ps, left_ps);
  if (paths_) [[unlikely]]
    paths_->OfLane(sender).ExtendTo(left_ps, PathCause::kTransit);
  if (--lane.awaits == 0) Wake(sender);
}

void LaneExecutor::OnCompleted(uint32_t id) {
  if (table_.slots(id).is_closed) [[unlikely]]
    return;
  if (paths_) [[unlikely]]
    paths_->OnCompleted(id, table_.slots(id).progress.completed % kConnectionSlots);
  ++table_.slots(id).progress.completed;
  WakeSender(table_.slots(id));
  RunWoken();
}

void LaneExecutor::OnGranted(uint32_t id) {
  if (table_.slots(id).is_closed) [[unlikely]]
    return;
  if (paths_) [[unlikely]]
    paths_->OnGranted(id, table_.slots(id).progress.clear_to_send % kConnectionSlots);
  ++table_.slots(id).progress.clear_to_send;
  QueueAtProxy(id);
}

void LaneExecutor::OnNetworkFailed(uint32_t id, bool at_sender, const std::string& why) {
  if (table_.slots(id).is_closed) return;
  if (failover_ && why.starts_with(stack_->NoAnswer()) && failover_->TryToMove(id)) {
    RunWoken();
    return;
  }
  observer_.OnConnectionError(id, at_sender, why);
}

}  // namespace railyard
