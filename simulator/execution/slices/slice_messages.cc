// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/slices/slice_messages.h"

#include <algorithm>
#include <vector>

#include "simulator/diagnostics/check.h"
#include "simulator/units/time_end.h"

namespace railyard {

void SliceMessages::Move(Lane& lane, int64_t done_ps) {
  lane.free_ps = done_ps;
  if (!lane.HasSeveralPeers()) [[likely]] {
    if (lane.receives) Take(lane, lane.receive_connection, done_ps);
    if (lane.sends) Send(lane, lane.send_connection, done_ps);
    return;
  }
  const LaneConnections& peers = parts_.lanes.connections(lane);
  for (const ConnectionId connection : peers.receives) Take(lane, connection, done_ps);
  if (!peers.results.empty()) SendBySwitch(lane, peers, done_ps);
  for (const ConnectionId connection : peers.sends) {
    if (!parts_.table.connection(connection).is_switch_result()) Send(lane, connection, done_ps);
  }
}

// --- Receiving -----------------------------------------------------------------------------------

void SliceMessages::Take(const Lane& lane, ConnectionId id, int64_t done_ps) {
  MessageSlots& from = parts_.table.slots(id);
  const uint32_t slot = from.consumed++ % kConnectionSlots;
  SIM_CHECK(from.sizes[slot] == MarkOf(lane.slice_bytes) || from.sizes[slot] == kUnknownSize,
            "a slice was received that is not the one that was sent");
  uint32_t bytes = lane.slice_bytes;
  if (lane.HasSeveralPeers() && parts_.table.connection(id).is_network_sum()) {
    bytes = parts_.network_sums.CountReceived(parts_.lanes.connections(lane), id, bytes);
  }
  parts_.table.taken_bytes(id) += bytes;
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnTaken(parts_.lanes.IndexOf(lane), id, slot, lane.free_ps);
  if (!watched_.empty() && watched_.contains(parts_.table.connection(id).collective)) [[unlikely]] {
    parts_.observer.OnPayloadTaken(parts_.table.connection(id).collective, lane.slice_bytes);
  }
  if (from.network) {
    parts_.proxies.GrantAt(done_ps, id);
  } else {
    from.time_ps[slot] = done_ps + from.flag_latency_ps;
    parts_.wakes.WakeSender(from);
  }
}

bool SliceMessages::Load(Lane& lane) {
  const auto load = [&](ConnectionId connection) {
    const FlowId flow = parts_.table.connection(connection).load_flow;
    if (flow == FlowId::kNone) return;
    parts_.load_store.Post(flow, parts_.clock.SizeOf(lane.cta.costs, lane.slice_bytes));
    SIM_CHECK(++lane.loading > 0, "a lane that loads from too many at a time");
  };
  if (lane.HasSeveralPeers()) {
    for (const ConnectionId connection : parts_.lanes.connections(lane).receives) load(connection);
  } else if (lane.receives) {
    load(lane.receive_connection);
  }
  return lane.loading > 0;
}

void SliceMessages::LoadAhead(Lane& lane) {
  if (lane.is_loaded || lane.loading > 0 || lane.steps_left == 0 || lane.slice_bytes == 0) return;
  const auto is_seen = [&](ConnectionId connection) {
    const MessageSlots& from = parts_.table.slots(connection);
    return from.delivered != from.consumed &&
           from.time_ps[from.consumed % kConnectionSlots] <= parts_.engine.NowPs();
  };
  if (!lane.HasSeveralPeers()) {
    if (!lane.receives || !is_seen(lane.receive_connection)) return;
  } else if (!std::ranges::all_of(parts_.lanes.connections(lane).receives, is_seen)) {
    return;
  }
  Load(lane);
}

// --- Sending -------------------------------------------------------------------------------------

void SliceMessages::Send(Lane& lane, ConnectionId id, int64_t done_ps) {
  MessageSlots& to = parts_.table.slots(id);
  const uint32_t slot = to.posted++ % kConnectionSlots;
  if (to.network) {
    StagedMessages& staged = parts_.table.staged(parts_.table.connection(id));
    staged.bytes[slot] = lane.slice_bytes;
    staged.time_ps[slot] = done_ps;
  } else {
    to.sizes[slot] = MarkOf(lane.slice_bytes);
    to.time_ps[slot] = done_ps;
  }
  to.costs = lane.cta.costs;
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnSent(parts_.lanes.IndexOf(lane), id, slot);
  bool over_nvlink = lane.sends_over_nvlink;
  FlowId flow = lane.send_flow;
  if (lane.HasSeveralPeers()) {
    const Connection& used = parts_.table.connection(id);
    if (used.is_switch_operand()) {
      OnStored(id);  // a flag signals the data
      return;
    }
    if (used.is_network_sum()) {
      SendToNetworkSum(lane, id, done_ps);
      return;
    }
    over_nvlink = !used.is_on_network() || used.is_relayed();
    flow = used.is_relayed() ? used.relay_flow : used.flow;
  }
  if (!over_nvlink) {
    parts_.proxies.Stage(id, lane.cta.costs, done_ps);
  } else if (lane.slice_bytes != 0) {
    parts_.load_store.Post(flow, parts_.clock.SizeOf(lane.cta.costs, lane.slice_bytes));
    ++lane.awaits;
  } else if (Ahead(to.posted, to.network ? to.progress.relayed : to.delivered) == 1) {
    OnStored(id);
  }
}

void SliceMessages::SendToNetworkSum(const Lane& lane, ConnectionId id, int64_t done_ps) {
  parts_.network_sums.Stage(parts_.lanes.position(parts_.lanes.IndexOf(lane)).id,
                            parts_.lanes.connections(lane), id, lane.slice_bytes,
                            parts_.clock.SizeOf(lane.cta.costs, lane.slice_bytes).bytes);
  parts_.proxies.Stage(id, lane.cta.costs, done_ps);
}

void SliceMessages::RequestSum(const Lane& lane) {
  const LaneConnections& peers = parts_.lanes.connections(lane);
  parts_.switch_sums.Request(peers.operands, peers.results,
                             parts_.clock.SizeOf(lane.cta.costs, lane.slice_bytes));
}

void SliceMessages::SendBySwitch(const Lane& lane, const LaneConnections& peers, int64_t done_ps) {
  parts_.switch_sums.OpenResults(peers.results);
  for (const ConnectionId result : peers.results) {
    MessageSlots& to = parts_.table.slots(result);
    const uint32_t slot = to.posted++ % kConnectionSlots;
    to.sizes[slot] = MarkOf(lane.slice_bytes);
    to.time_ps[slot] = done_ps;
    to.costs = lane.cta.costs;
    if (paths_ != nullptr) [[unlikely]]
      paths_->OnSent(parts_.lanes.IndexOf(lane), result, slot);
    if (lane.slice_bytes == 0 && Ahead(to.posted, to.delivered) == 1) OnStored(result);
  }
  if (lane.slice_bytes == 0) return;
  parts_.switch_sums.Send(peers.results, parts_.clock.SizeOf(lane.cta.costs, lane.slice_bytes));
}

// --- Arrivals ------------------------------------------------------------------------------------

// Operands for a switch are not moved: only the flag is sent.
bool SliceMessages::HasFlagBehindData(ConnectionId id) const {
  return parts_.clock.HasFlagBehindData(parts_.table.slots(id).costs) ||
         parts_.table.connection(id).is_switch_operand();
}

int64_t SliceMessages::HerePs(const MessageSlots& slots, int64_t before_ps, int64_t written_ps,
                              bool has_flag) const {
  const int64_t seen_ps = written_ps + (has_flag ? slots.flag_latency_ps : 0);
  return std::max({before_ps, seen_ps, parts_.engine.NowPs()});
}

void SliceMessages::OnStored(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  if (slots.network) {
    OnRelayed(id);
    return;
  }
  const StepCosts& costs = parts_.clock.costs(slots.costs);
  const bool has_flag = HasFlagBehindData(id);
  int64_t here_ps = 0;
  int64_t first_seen_ps = kNeverPs;
  do {
    const uint32_t slot = slots.delivered++ % kConnectionSlots;
    here_ps = HerePs(slots, here_ps, slots.time_ps[slot], has_flag || slots.sizes[slot] == 0);
    slots.time_ps[slot] = here_ps + costs.nvlink_step_latency_ps;
    if (paths_ != nullptr) [[unlikely]]
      paths_->OnSeen(id, slot, slots.time_ps[slot]);
    first_seen_ps = std::min(first_seen_ps, slots.time_ps[slot]);
  } while (slots.delivered != slots.posted && slots.sizes[slots.delivered % kConnectionSlots] == 0);
  parts_.wakes.WakeReceiver(slots, first_seen_ps);
}

void SliceMessages::OnRelayed(ConnectionId id) {
  MessageSlots& slots = parts_.table.slots(id);
  const StagedMessages& staged = parts_.table.staged(parts_.table.connection(id));
  const bool has_flag = HasFlagBehindData(id);
  uint8_t& relayed = slots.progress.relayed;
  int64_t here_ps = 0;
  do {
    const uint32_t slot = relayed++ % kConnectionSlots;
    here_ps = HerePs(slots, here_ps, staged.time_ps[slot], has_flag || staged.bytes[slot] == 0);
    if (paths_ != nullptr) [[unlikely]]
      paths_->OnStored(id, slot, here_ps);
    parts_.proxies.Stage(id, slots.costs, here_ps);
  } while (relayed != slots.posted && staged.bytes[relayed % kConnectionSlots] == 0);
}

}  // namespace railyard
