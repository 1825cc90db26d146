// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/proxies/network_proxies.h"

#include <utility>

#include "simulator/event_order/event_order.h"

namespace railyard {

NetworkProxies::NetworkProxies(const Parts& parts, std::vector<ProxyCosts> costs)
    : parts_(parts), costs_(std::move(costs)) {
  parts_.engine.Register(event_order::kPost, {.name = "posts", .state = {.owner = parts_.state}},
                         &NetworkProxies::HandlePost, this);
  parts_.engine.SetPrefetch(event_order::kPost, {.records = {parts_.table.SlotTable().base,
                                                             sizeof(MessageSlots) >> kPhaseBits},
                                                 .fields = {}});
}

// --- Events --------------------------------------------------------------------------------------

void NetworkProxies::HandlePost(void* self, uint32_t target) {
  constexpr uint32_t kPhaseMask = (1u << kPhaseBits) - 1;
  static_cast<NetworkProxies*>(self)->On(static_cast<Phase>(target & kPhaseMask),
                                         ConnectionId{target >> kPhaseBits});
}

void NetworkProxies::Schedule(int64_t time_ps, ConnectionId id, Phase phase) {
  if (time_ps == parts_.engine.NowPs()) {
    On(phase, id);
    return;
  }
  parts_.engine.ScheduleFabric(time_ps, event_order::kPost, parts_.table.connection(id).tie,
                               id << kPhaseBits | static_cast<uint32_t>(phase));
}

void NetworkProxies::On(Phase phase, ConnectionId id) {
  const MessageSlots& slots = parts_.table.slots(id);
  if (slots.is_closed) [[unlikely]]
    return;
  switch (phase) {
    case Phase::kStaged:
      OnStaged(id);
      break;
    case Phase::kPosted:
      Post(id);
      break;
    case Phase::kGranted:
      if (slots.receiver != LaneIndex::kNone) Grant(slots.receiver, id);
      break;
  }
}

int64_t NetworkProxies::PostedPs(ConnectionId id) {
  const int64_t now_ps = parts_.engine.NowPs();
  const MessageSlots& slots = parts_.table.slots(id);
  if (parts_.clock.costs(slots.costs).gpu_posts) [[unlikely]]
    return now_ps;
  const GpuIndex gpu = parts_.table.connection(id).injecting_gpu;
  const ProxyCosts& costs = costs_[gpu];
  int64_t busy_ps = costs.post_ps;
  if (costs.completion_ps != 0 && slots.network) [[unlikely]] {
    busy_ps += CompletionsPs(costs, id, (slots.progress.queued - 1u) % kConnectionSlots);
  }
  return parts_.threads.Occupy(gpu, now_ps, busy_ps);
}

int64_t NetworkProxies::SeenPs(ConnectionId id) {
  const int64_t now_ps = parts_.engine.NowPs();
  const MessageSlots& slots = parts_.table.slots(id);
  if (parts_.clock.costs(slots.costs).gpu_posts) [[unlikely]]
    return now_ps;
  const GpuIndex gpu = parts_.table.connection(id).to_gpu;
  const ProxyCosts& costs = costs_[gpu];
  int64_t busy_ps = costs.arrival_ps;
  if (costs.completion_ps != 0 && slots.network) [[unlikely]] {
    busy_ps += CompletionsPs(costs, id, slots.delivered % kConnectionSlots);
  }
  return parts_.threads.Occupy(gpu, now_ps, busy_ps);
}

// A part and the clear-to-send complete at both ends; NCCL's overhead contains one completion.
int64_t NetworkProxies::CompletionsPs(const ProxyCosts& costs, ConnectionId id,
                                      uint32_t slot) const {
  const Connection& connection = parts_.table.connection(id);
  const uint32_t bytes = parts_.table.staged(connection).bytes[slot];
  const MessageSize size = parts_.clock.SizeOf(parts_.table.slots(id).costs, bytes);
  return costs.completion_ps * connection.transport->CompletedParts(connection.flow, size.bytes);
}

// --- Sending -------------------------------------------------------------------------------------

void NetworkProxies::OnStaged(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  if (!slots.network) [[unlikely]] {  // a sum: the tree takes what comes
    Schedule(PostedPs(id), id, Phase::kPosted);
    return;
  }
  ++slots.progress.staged;
  QueueReady(id);
}

void NetworkProxies::QueueReady(ConnectionId id) {
  NetworkProgress& progress = parts_.table.slots(id).progress;
  const bool waits_for_grants = !parts_.table.connection(id).is_buffered;
  while (progress.queued != progress.staged &&
         (progress.queued != progress.clear_to_send || !waits_for_grants)) {
    if (paths_ != nullptr && waits_for_grants) [[unlikely]]
      paths_->OnQueued(id, progress.queued % kConnectionSlots);
    if (!watchers_.empty() && waits_for_grants)
      Notify(MessageEvent::kQueued, id, progress.queued % kConnectionSlots);
    ++progress.queued;
    Schedule(PostedPs(id), id, Phase::kPosted);
  }
}

void NetworkProxies::Post(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  const Connection& connection = parts_.table.connection(id);
  const uint32_t slot = slots.progress.sent++ % kConnectionSlots;
  if (!slots.network) [[unlikely]] {
    parts_.sums.Post(id, slot);
    return;
  }
  const uint32_t bytes = parts_.table.staged(connection).bytes[slot];
  // A buffering transport may run so far ahead that the receiver's slot still has an earlier
  // message.
  if (!connection.is_buffered) [[likely]]
    slots.sizes[slot] = MarkOf(bytes);
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnPosted(id, slot);
  if (!watchers_.empty()) Notify(MessageEvent::kPosted, id, slot);
  connection.transport->Post(connection.flow, {.size = parts_.clock.SizeOf(slots.costs, bytes),
                                               .tolerance_ppm = connection.loss_tolerance_ppm,
                                               .label = MarkOf(bytes)});
}

void NetworkProxies::OnGranted(ConnectionId id) {
  NetworkProgress& progress = parts_.table.slots(id).progress;
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnGranted(id, progress.clear_to_send % kConnectionSlots);
  ++progress.clear_to_send;
  QueueReady(id);
}

void NetworkProxies::OnCompleted(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnCompleted(id, slots.progress.completed % kConnectionSlots);
  if (!watchers_.empty())
    Notify(MessageEvent::kCompleted, id, slots.progress.completed % kConnectionSlots);
  ++slots.progress.completed;
  parts_.wakes.WakeSender(slots);
}

// --- Receiving -----------------------------------------------------------------------------------

void NetworkProxies::Grant(LaneIndex lane, ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  const uint8_t credits = parts_.lanes.lane(lane).in_flight_messages;
  parts_.lanes.GrantMessages(
      lane, id,
      [&slots, credits] { return Ahead(slots.progress.granted, slots.consumed) < credits; },
      [&] {
        if (paths_ != nullptr) [[unlikely]]
          paths_->OnGrant(id, parts_.lanes.position(lane).channel, credits);
        ++slots.progress.granted;
        const Connection& granted = parts_.table.connection(id);
        granted.transport->Grant(granted.flow, true);
      });
}

void NetworkProxies::OnDelivered(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  const Connection& connection = parts_.table.connection(id);
  const int64_t seen_ps = SeenPs(id) + parts_.clock.costs(slots.costs).LatencyAfterArrivalPs();
  const uint32_t slot = slots.delivered % kConnectionSlots;
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnArrived(id, slot, seen_ps);
  // A buffering transport may hold more messages than there are slots, so the size comes with each.
  if (connection.is_buffered) [[unlikely]]
    slots.sizes[slot] = connection.transport->LabelOfDelivered(connection.flow);
  ++slots.delivered;
  slots.time_ps[slot] = seen_ps;
  parts_.wakes.WakeReceiver(slots, seen_ps);
}

void NetworkProxies::OnSumDelivered(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  const int64_t seen_ps = SeenPs(id) + parts_.clock.costs(slots.costs).LatencyAfterArrivalPs();
  const uint32_t slot = slots.delivered++ % kConnectionSlots;
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnSeen(id, slot, seen_ps);
  slots.time_ps[slot] = seen_ps;
  parts_.wakes.WakeReceiver(slots, seen_ps);
}

// --- Connections that move -----------------------------------------------------------------------

void NetworkProxies::OnLeave(ConnectionId id) {
  if (paths_ != nullptr) paths_->OnMove(id);
}

void NetworkProxies::Resend(ConnectionId id, LaneObserver& observer) {
  const Connection& connection = parts_.table.connection(id);
  MessageSlots& slots = parts_.table.slots(id);
  NetworkProgress& progress = slots.progress;
  for (uint8_t i = slots.delivered; i != progress.clear_to_send; ++i) {
    connection.transport->Grant(connection.flow, false);
  }
  for (uint8_t i = progress.clear_to_send; i != progress.granted; ++i) {
    connection.transport->Grant(connection.flow, true);
  }
  for (uint8_t i = slots.delivered; i != progress.sent; ++i) {
    const uint32_t bytes = parts_.table.staged(connection).bytes[i % kConnectionSlots];
    observer.OnRetransmission(id);
    observer.OnPacketRepeated(id, bytes);
    connection.transport->Post(connection.flow, {.size = parts_.clock.SizeOf(slots.costs, bytes),
                                                 .tolerance_ppm = connection.loss_tolerance_ppm});
  }
  for (; progress.completed != slots.delivered; ++progress.completed) {
    const uint32_t slot = progress.completed % kConnectionSlots;
    if (paths_ != nullptr) paths_->OnCompleted(id, slot);
    if (!watchers_.empty()) Notify(MessageEvent::kCompleted, id, slot);
  }
  parts_.wakes.WakeSender(slots);
}

}  // namespace railyard
