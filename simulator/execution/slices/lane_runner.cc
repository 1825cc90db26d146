// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/slices/lane_runner.h"

#include <algorithm>
#include <cstddef>

#include "simulator/event_order/event_order.h"
#include "simulator/units/time_end.h"

namespace railyard {

LaneRunner::LaneRunner(const Parts& parts) : parts_(parts) {
  parts_.engine.Register(event_order::kChannel,
                         {.name = "slices", .state = {.owner = parts_.state}},
                         &LaneRunner::HandleChannel, this);
  const TimingWheel::PrefetchTable slots = parts_.table.SlotTable();
  parts_.engine.SetPrefetch(
      event_order::kChannel,
      {.records = parts_.lanes.Records(),
       .fields = {
           {{.offset = offsetof(Lane, receive_connection), .table = slots},
            {.offset = offsetof(Lane, send_connection), .table = slots},
            {.offset = offsetof(Lane, send_flow), .table = parts_.load_store.FlowTable()}}}});
}

void LaneRunner::HandleChannel(void* self, uint32_t target) {
  auto& runner = *static_cast<LaneRunner*>(self);
  const LaneIndex id{target};
  const Lane& lane = runner.parts_.lanes.lane(id);
  if (!lane.HasSeveralPeers() && lane.has_claimed) [[likely]] {
    if (lane.receives) runner.parts_.table.FetchTaken(lane.receive_connection);
    if (lane.sends_over_nvlink) runner.parts_.load_store.FetchLinks(lane.send_flow);
  }
  runner.parts_.wakes.Wake(id);
  runner.RunWoken();
}

// --- Programs ------------------------------------------------------------------------------------

uint32_t LaneRunner::Start(const RankProgram& program) {
  std::vector<ChannelIndex> started;
  for (uint32_t channel = 0; channel < program.schedule->channel_count(); ++channel) {
    if (program.schedule->BatchCount(program.rank, channel) == 0) continue;
    started.push_back(parts_.lanes.OpenChannel(program, channel, parts_.engine.NowPs()));
    if (paths_ != nullptr) [[unlikely]] {
      paths_->StartChannel(started.back(),
                           parts_.table.GpuOfRank(program.communicator, program.rank),
                           program.collective);
    }
  }
  for (const ChannelIndex channel : started) StartBatch(channel);
  RunWoken();
  return static_cast<uint32_t>(started.size());
}

void LaneRunner::StartBatch(ChannelIndex id) {
  const uint32_t lanes = parts_.lanes.NextBatch(id);
  for (uint32_t number = 0; number < lanes; ++number) {
    const LaneIndex lane = parts_.lanes.OpenLane(id, number);
    if (paths_ != nullptr) [[unlikely]]
      paths_->StartLane(lane, id);
    parts_.wakes.Wake(lane);
  }
  if (lanes > 0) return;
  const RunningIndex operation = parts_.lanes.channel(id).program.operation;
  const int64_t end_ps = parts_.lanes.channel(id).end_ps;
  parts_.lanes.CloseChannel(id);
  parts_.observer.OnChannelFinished(operation, end_ps,
                                    paths_ != nullptr ? &paths_->OfChannel(id) : nullptr);
}

void LaneRunner::FinishLane(LaneIndex id) {
  parts_.claims.Release(id);
  const ChannelIndex channel = parts_.lanes.position(id).channel;
  if (paths_ != nullptr) [[unlikely]]
    paths_->EndLane(id, channel);
  if (!parts_.lanes.CloseLane(id)) return;
  ++parts_.lanes.channel(channel).batch;
  StartBatch(channel);
}

// --- Slices --------------------------------------------------------------------------------------

void LaneRunner::RunWoken() {
  if (is_running_) return;  // further down the stack
  is_running_ = true;
  do {
    parts_.wakes.TakeAll([this](LaneIndex lane) { Advance(lane); });
    parts_.load_store.ServeDue();  // may wake lanes whose messages have left
  } while (!parts_.wakes.empty());
  is_running_ = false;
}

// A lane's record may move in memory while a lane claims its connections or finishes.
void LaneRunner::Advance(LaneIndex id) {
  LaneTable& lanes = parts_.lanes;
  if (!lanes.lane(id).in_use) [[unlikely]]
    return;
  for (;;) {
    if (lanes.lane(id).awaits > 0) {
      if (lanes.lane(id).loads) parts_.messages.LoadAhead(lanes.lane(id));
      return;
    }
    if (lanes.lane(id).loading > 0) return;
    if (lanes.lane(id).steps_left == 0) {
      FinishLane(id);
      return;
    }
    if (!parts_.clock.AllAtOwnSpeed() && StandsStill(id)) [[unlikely]]
      return;
    if (!lanes.lane(id).has_claimed && !parts_.claims.Claim(id)) return;
    Lane& lane = lanes.lane(id);
    const int64_t start_ps = EarliestStartPs(lane);
    if (start_ps == kNeverPs) return;
    // A slice without bytes directly behind the slice before belongs to the same event, as do the
    // later steps of a round.
    const bool is_next =
        ContinuesRound(lane) || (lane.slice_bytes == 0 && start_ps == lane.free_ps);
    if (start_ps > parts_.engine.NowPs() && !is_next) {
      parts_.wakes.WakeAt(start_ps, lane.tie, id);
      return;
    }
    if (!BeginSlice(lane, start_ps)) return;
    lanes.NextSlice(id);
  }
}

bool LaneRunner::BeginSlice(Lane& lane, int64_t start_ps) {
  const bool is_by_switch = lane.HasSeveralPeers() && lane.slice_bytes != 0 &&
                            !parts_.lanes.connections(lane).operands.empty();
  if (!is_by_switch) {
    if (lane.loads && !lane.is_loaded && lane.slice_bytes != 0 && parts_.messages.Load(lane)) {
      return false;
    }
    lane.is_loaded = false;
  }
  const int64_t slice_ps = SlicePs(lane, start_ps);
  const int64_t done_ps = SumPs(start_ps, AtSpeedPs(lane, slice_ps));
  if (lane.is_part) parts_.lanes.BeginPartSlice(parts_.lanes.IndexOf(lane), start_ps, done_ps);
  if (HasRounds(lane) && !ContinuesRound(lane)) {
    LaneConnections& peers = parts_.lanes.connections(lane);
    const int64_t round_ps = parts_.clock.RoundPs(lane.cta, peers.round_bytes);
    peers.next_round_ps = SumPs(start_ps, AtSpeedPs(lane, round_ps));
  }
  if (paths_ != nullptr) [[unlikely]]
    Trace(lane, {.start_ps = start_ps, .done_ps = done_ps, .own_ps = slice_ps});
  if (is_by_switch) {
    lane.awaits = 1;
    lane.free_ps = done_ps;
    parts_.messages.RequestSum(lane);
    return false;
  }
  parts_.messages.Move(lane, done_ps);
  return true;
}

bool LaneRunner::HasRounds(const Lane& lane) const {
  return lane.HasSeveralPeers() && parts_.lanes.connections(lane).steps_of_round > 1;
}

bool LaneRunner::ContinuesRound(const Lane& lane) const {
  return lane.HasSeveralPeers() && !parts_.lanes.connections(lane).begins_round;
}

// A round's first step takes the time of all, which then end together.
int64_t LaneRunner::SlicePs(const Lane& lane, int64_t start_ps) {
  if (lane.is_part) return parts_.lanes.PartSlicePs(parts_.lanes.IndexOf(lane), start_ps);
  if (ContinuesRound(lane)) return 0;
  if (HasRounds(lane)) {
    return parts_.lanes.connections(lane).round_ps;
  }
  return parts_.clock.SlicePs(lane.cta, lane.slice_bytes);
}

int64_t LaneRunner::EarliestStartPs(const Lane& lane) {
  int64_t start_ps = lane.free_ps;
  if (lane.slice_bytes != 0) {
    start_ps = SumPs(start_ps, AtSpeedPs(lane, parts_.clock.OverheadPs(lane.cta)));
  }
  start_ps = std::max(parts_.engine.NowPs(), start_ps);
  if (!lane.HasSeveralPeers()) [[likely]] {
    if (lane.receives) start_ps = std::max(start_ps, ReceivablePs(lane, lane.receive_connection));
    if (!lane.sends || start_ps == kNeverPs) return start_ps;
    return std::max(start_ps, SendablePs(lane, lane.send_connection));
  }
  const LaneConnections& peers = parts_.lanes.connections(lane);
  if (!peers.begins_round) return lane.free_ps;
  const bool has_round = peers.steps_of_round > 1;
  start_ps = std::max(start_ps, peers.next_round_ps);
  for (const ConnectionId connection : has_round ? peers.receive_connections : peers.receives) {
    if (start_ps != kNeverPs) start_ps = std::max(start_ps, ReceivablePs(lane, connection));
  }
  for (const ConnectionId connection : has_round ? peers.send_connections : peers.sends) {
    if (start_ps != kNeverPs) start_ps = std::max(start_ps, SendablePs(lane, connection));
  }
  return start_ps;
}

int64_t LaneRunner::ReceivablePs(const Lane& lane, ConnectionId connection) {
  MessageSlots& from = parts_.table.slots(connection);
  if (from.delivered == from.consumed) {
    from.receiver_waits = true;
    from.receiver_free_ps = lane.free_ps;
    from.receiver_tie = lane.tie;
    return kNeverPs;
  }
  return from.time_ps[from.consumed % kConnectionSlots];
}

int64_t LaneRunner::SendablePs(const Lane& lane, ConnectionId connection) {
  MessageSlots& to = parts_.table.slots(connection);
  const uint8_t limit = lane.in_flight_messages;
  if (Ahead(to.posted, to.network ? to.progress.completed : to.consumed) >= limit) {
    to.sender_waits = true;
    return kNeverPs;
  }
  return to.network ? 0 : to.time_ps[Ahead(to.posted, limit) % kConnectionSlots];
}

void LaneRunner::Trace(const Lane& lane, const SliceTimes& times) {
  const LaneIndex id = parts_.lanes.IndexOf(lane);
  PathTracer::Slice slice{.lane = id,
                          .gpu = parts_.lanes.GpuOf(id),
                          .collective = parts_.lanes.ProgramOf(id).collective,
                          .channel = parts_.lanes.position(id).id.channel,
                          .lane_number = parts_.lanes.position(id).id.lane,
                          .bytes = lane.slice_bytes,
                          .free_ps = lane.free_ps,
                          .receives = {&lane.receive_connection, lane.receives ? 1u : 0u},
                          .sends = {&lane.send_connection, lane.sends ? 1u : 0u},
                          .in_flight_messages = lane.in_flight_messages,
                          .is_empty = lane.slice_bytes == 0,
                          .start_ps = times.start_ps,
                          .done_ps = times.done_ps,
                          .slower_overhead_ps = 0,
                          .usual_ps = times.own_ps};
  slice.own_receives = slice.receives;
  slice.own_sends = slice.sends;
  if (lane.HasSeveralPeers()) {
    const LaneConnections& peers = parts_.lanes.connections(lane);
    slice.own_receives = peers.receives;
    slice.own_sends = peers.sends;
    // A round begins when the messages of all of its steps may be taken and sent.
    const bool begins_round = peers.begins_round && HasRounds(lane);
    slice.receives = begins_round ? peers.receive_connections : peers.receives;
    slice.sends = begins_round ? peers.send_connections : peers.sends;
  }
  const int64_t overhead_ps = ContinuesRound(lane) ? 0 : parts_.clock.OverheadPs(lane.cta);
  slice.slower_overhead_ps = AtSpeedPs(lane, overhead_ps) - overhead_ps;
  paths_->OnSlice(slice);
}

// --- GPUs that stand still -----------------------------------------------------------------------

bool LaneRunner::StandsStill(LaneIndex id) {
  if (!parts_.clock.StandsStill(parts_.lanes.GpuOf(id))) return false;
  if (paths_ != nullptr) paths_->StandStill(id);
  if (std::ranges::find(still_lanes_, id) == still_lanes_.end()) still_lanes_.push_back(id);
  return true;
}

void LaneRunner::ResumeGpu(GpuIndex gpu) {
  const auto goes_on = [&](LaneIndex id) { return parts_.lanes.GpuOf(id) == gpu; };
  for (const LaneIndex id : still_lanes_) {
    if (goes_on(id)) parts_.wakes.Wake(id);
  }
  std::erase_if(still_lanes_, goes_on);
  RunWoken();
}

void LaneRunner::ForgetEnded() {
  std::erase_if(still_lanes_, [this](LaneIndex id) { return !parts_.lanes.lane(id).in_use; });
}

// --- Callbacks of transports ---------------------------------------------------------------------

void LaneRunner::OnInjected(ConnectionId connection, int64_t left_ps) {
  const LaneIndex sender = parts_.table.slots(connection).sender;
  Lane& lane = parts_.lanes.lane(sender);
  lane.free_ps = std::max(lane.free_ps, left_ps);
  if (paths_ != nullptr) [[unlikely]]
    paths_->OfLane(sender).ExtendTo(left_ps, PathCause::kTransit);
  if (--lane.awaits == 0) parts_.wakes.Wake(sender);
}

void LaneRunner::OnLoaded(ConnectionId connection) {
  const MessageSlots& slots = parts_.table.slots(connection);
  if (paths_ != nullptr) [[unlikely]]
    paths_->OnLoaded(connection, slots.consumed % kConnectionSlots);
  const LaneIndex receiver = slots.receiver;
  Lane& lane = parts_.lanes.lane(receiver);
  if (--lane.loading > 0) return;
  lane.is_loaded = true;
  parts_.wakes.Wake(receiver);
}

void LaneRunner::OnSwitchSum(ConnectionId connection) {
  const LaneIndex id = parts_.table.slots(connection).receiver;
  Lane& lane = parts_.lanes.lane(id);
  lane.awaits = 0;
  const int64_t done_ps = std::max(parts_.engine.NowPs(), lane.free_ps);
  if (paths_ != nullptr) [[unlikely]]
    paths_->OfLane(id).ExtendTo(done_ps, PathCause::kTransit);
  parts_.messages.Move(lane, done_ps);
  parts_.lanes.NextSlice(id);
  parts_.wakes.Wake(id);
}

}  // namespace railyard
