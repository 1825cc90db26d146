// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/lane_executor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/execution/lanes/flow_sinks.h"
#include "simulator/execution/paths/fabric_layout.h"
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "simulator/units/mix64.h"
#include "simulator/units/time_end.h"

namespace railyard {
LaneExecutor::~LaneExecutor() = default;

LaneExecutor::LaneExecutor(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const GpuCosts& costs, const NetworkStackSettings& settings,
                           LaneObserver& observer)
    : graph_(graph),
      network_(network),
      engine_(network.engine()),
      observer_(observer),
      proxies_(graph.gpus().size()),
      load_store_(graph, network),
      stack_(MakeNetworkStack({.graph = graph,
                               .network = network,
                               .routing = routing,
                               .load_store = load_store_,
                               .proxies = proxies_},
                              settings)),
      aggregation_(graph, network, routing, settings.nic),
      sinks_(std::make_unique<FlowSinks>(*this)),
      table_(graph, network, load_store_, *stack_, aggregation_,
             {.stores = &sinks_->stores,
              .loads = &sinks_->loads,
              .switch_sums = &sinks_->switch_sums,
              .network_sums = &sinks_->network_sums,
              .network = &sinks_->network}) {
  for (const DeviceId gpu : graph.gpus()) {
    proxy_costs_.push_back(costs.OfProxy(CpuOf(graph.device(gpu).cpu)));
  }
  network_.SetSink(load_store_);
  network_.SetSinkOf({PacketKind::kAggregateOperand, PacketKind::kAggregateResult}, aggregation_);
  stack_->TakePackets(network_);
  engine_.Register(event_order::kPost, {.name = "posts"}, &LaneExecutor::HandlePost, this);
  engine_.Register(event_order::kChannel, {.name = "slices"}, &LaneExecutor::HandleChannel, this);
  static_assert(sizeof(MessageSlots) % (1u << kPostPhaseBits) == 0);
  const TimingWheel::PrefetchTable slots = table_.SlotTable();
  const TimingWheel::PrefetchTable flows = load_store_.FlowTable();
  engine_.SetPrefetch(event_order::kChannel,
                      {.records = {&lanes_base_, sizeof(Lane)},
                       .fields = {{{.offset = offsetof(Lane, receive_connection), .table = slots},
                                   {.offset = offsetof(Lane, send_connection), .table = slots},
                                   {.offset = offsetof(Lane, send_flow), .table = flows}}}});
  network_.FetchFlowsAhead(flows);
  engine_.SetPrefetch(
      event_order::kPost,
      {.records = {slots.base, sizeof(MessageSlots) >> kPostPhaseBits}, .fields = {}});
}

// --- Events --------------------------------------------------------------------------------------

void LaneExecutor::HandlePost(void* self, uint32_t target) {
  auto& executor = *static_cast<LaneExecutor*>(self);
  constexpr uint32_t kPhaseMask = (1u << kPostPhaseBits) - 1;
  executor.OnPost(target >> kPostPhaseBits, static_cast<PostPhase>(target & kPhaseMask));
}

void LaneExecutor::HandleChannel(void* self, uint32_t lane) {
  auto& executor = *static_cast<LaneExecutor*>(self);
  const Lane& woken = executor.lanes_[lane];
  if (woken.peers == kNone && woken.sends_over_nvlink) {
    executor.load_store_.FetchLinks(woken.send_flow);
  }
  executor.Wake(lane);
  executor.RunWoken();
}

uint8_t LaneExecutor::AddCosts(const StepCosts& costs, const MessageRule& rule) {
  const CostClass added = {costs, rule.line_payload_bytes, rule.line_wire_bytes};
  const auto found = std::find(costs_.begin(), costs_.end(), added);
  const auto number = static_cast<size_t>(found - costs_.begin());
  SIM_CHECK(number <= UINT8_MAX, "too many kinds of costs");
  if (found == costs_.end()) costs_.push_back(added);
  return static_cast<uint8_t>(number);
}

// --- Steps and slices ----------------------------------------------------------------------------

void LaneExecutor::LoadSteps(uint32_t id) {
  Lane& lane = lanes_[id];
  LaneProgram& program = lane_programs_[id];
  lane.steps_left = 0;
  if (program.next_step == program.step_count) return;
  const Step step = program.schedule->StepAt(program.id, program.next_step);
  SIM_CHECK(step.bytes <= UINT32_MAX, "a chunk of 4 GiB or more");
  const uint64_t alike =
      std::min<uint64_t>({program.schedule->AlikeFrom(program.id, program.next_step),
                          program.step_count - program.next_step, UINT32_MAX});
  program.next_step += alike;
  lane.steps_left = static_cast<uint32_t>(alike);
  lane.step_bytes = static_cast<uint32_t>(step.bytes);
  lane.first_bytes = static_cast<uint32_t>(
      SliceOf(program.schedule->MessageRuleOf(program.id), step.bytes, 0).bytes);
  lane.receives = step.recv_from != kNoPeer;
  lane.sends = step.send_to != kNoPeer;
  if (lane.peers != kNone && lane.has_claimed) SetStepPeers(id);
  BeginStep(lane);
}

void LaneExecutor::BeginStep(Lane& lane) {
  lane.slices_left = lane.slices_per_chunk;
  lane.slice_bytes = lane.first_bytes;
  lane.rest_bytes = lane.step_bytes - lane.first_bytes;
}

void LaneExecutor::NextSlice(uint32_t id) {
  Lane& lane = lanes_[id];
  if (--lane.slices_left > 0) {
    // All slices of a chunk are as long as the first, until it ends.
    lane.slice_bytes = std::min(lane.first_bytes, lane.rest_bytes);
    lane.rest_bytes -= lane.slice_bytes;
  } else if (--lane.steps_left > 0) {
    BeginStep(lane);
  } else {
    LoadSteps(id);
  }
}

void LaneExecutor::RunWoken() {
  if (running_woken_) return;  // further down the stack
  running_woken_ = true;
  do {
    for (size_t i = 0; i < woken_.size(); ++i) Advance(woken_[i]);
    woken_.clear();
    load_store_.ServeDue();  // may wake lanes whose messages have left
  } while (!woken_.empty());
  running_woken_ = false;
}

void LaneExecutor::Advance(uint32_t id) {
  if (!lanes_[id].in_use) [[unlikely]]
    return;
  for (;;) {
    if (lanes_[id].awaits > 0) {
      if (lanes_[id].loads) PostLoadsAhead(lanes_[id]);
      return;
    }
    if (lanes_[id].loading > 0) return;
    if (lanes_[id].steps_left == 0) {
      FinishLane(id);
      return;
    }
    if (!gpu_speeds_.empty() && StandsStill(id)) [[unlikely]]
      return;
    if (!lanes_[id].has_claimed && !ClaimConnections(id)) return;
    Lane& lane = lanes_[id];
    const int64_t start_ps = EarliestStartPs(lane);
    if (start_ps == kNeverPs) return;
    // A slice without bytes that follows upon the one before is part of the same event.
    const bool is_next = lane.slice_bytes == 0 && start_ps == lane.free_ps;
    if (start_ps > engine_.NowPs() && !is_next) {
      engine_.ScheduleFabric(start_ps, event_order::kChannel, lane.tie, id);
      return;
    }
    if (lane.peers != kNone && !lane_peers_[lane.peers].operands.empty() && lane.slice_bytes != 0) {
      const int64_t done_ps = SumPs(start_ps, AtSpeedPs(lane, SlicePs(lane)));
      if (paths_) [[unlikely]]
        Trace(lane, start_ps, done_ps);
      RequestSum(lane, done_ps);
      return;
    }
    if (lane.loads && !lane.is_loaded && lane.slice_bytes != 0 && PostLoads(lane)) return;
    lane.is_loaded = false;
    const int64_t done_ps = SumPs(start_ps, AtSpeedPs(lane, SlicePs(lane)));
    if (paths_) [[unlikely]]
      Trace(lane, start_ps, done_ps);
    RunSlice(lane, done_ps);
    NextSlice(id);
  }
}

int64_t LaneExecutor::EarliestStartPs(const Lane& lane) {
  int64_t start_ps = lane.free_ps;
  if (lane.slice_bytes != 0) start_ps = SumPs(start_ps, OverheadPs(lane));
  start_ps = std::max(engine_.NowPs(), start_ps);
  if (lane.peers == kNone) [[likely]] {
    if (lane.receives) start_ps = std::max(start_ps, ReceivablePs(lane, lane.receive_connection));
    if (!lane.sends || start_ps == kNeverPs) return start_ps;
    return std::max(start_ps, SendablePs(lane, lane.send_connection));
  }
  const Peers& peers = lane_peers_[lane.peers];
  for (const uint32_t connection : peers.receives) {
    if (start_ps != kNeverPs) start_ps = std::max(start_ps, ReceivablePs(lane, connection));
  }
  for (const uint32_t connection : peers.sends) {
    if (start_ps != kNeverPs) start_ps = std::max(start_ps, SendablePs(lane, connection));
  }
  return start_ps;
}

int64_t LaneExecutor::ReceivablePs(const Lane& lane, uint32_t connection) {
  MessageSlots& from = table_.slots(connection);
  if (from.delivered == from.consumed) {
    from.receiver_waits = true;
    from.receiver_free_ps = lane.free_ps;
    from.receiver_tie = lane.tie;
    return kNeverPs;
  }
  return from.time_ps[from.consumed % kConnectionSlots];
}

int64_t LaneExecutor::SendablePs(const Lane& lane, uint32_t connection) {
  MessageSlots& to = table_.slots(connection);
  const uint8_t limit = lane.in_flight_messages;
  if (Ahead(to.posted, to.network ? to.progress.completed : to.consumed) >= limit) {
    to.sender_waits = true;
    return kNeverPs;
  }
  return to.network ? 0 : to.time_ps[Ahead(to.posted, limit) % kConnectionSlots];
}

int64_t LaneExecutor::SlicePs(const Lane& lane) {
  if (lane.slice_bytes == 0) return 0;
  const uint64_t key = uint64_t{lane.costs} << 48 | uint64_t{lane.warp_parts} << 40 |
                       uint64_t{lane.warps_of} << 32 | lane.slice_bytes;
  if (key != last_slice_key_) {
    const StepCosts& costs = costs_[lane.costs].costs;
    last_slice_key_ = key;
    uint64_t bytes = uint64_t{lane.slice_bytes} * lane.warps_of / lane.warp_parts;
    if (costs.iteration_bytes != 0 && bytes > costs.iteration_bytes) {
      bytes = (bytes + costs.iteration_bytes - 1) / costs.iteration_bytes * costs.iteration_bytes;
    }
    last_slice_ps_ =
        costs.channel_rate_bps == 0 ? 0 : TransferTimePs(bytes, costs.channel_rate_bps);
  }
  return last_slice_ps_;
}

uint32_t LaneExecutor::GpuOf(const Lane& lane) const {
  const auto id = static_cast<size_t>(&lane - lanes_.data());
  const Program& program = active_channels_[lane_programs_[id].channel].program;
  return table_.GpuOfRank(program.communicator, program.rank);
}

void LaneExecutor::Trace(const Lane& lane, int64_t start_ps, int64_t done_ps) {
  PathTracer::Slice slice{.lane = IdOf(lane),
                          .gpu = GpuOf(lane),
                          .receives = {&lane.receive_connection, lane.receives ? 1u : 0u},
                          .sends = {&lane.send_connection, lane.sends ? 1u : 0u},
                          .in_flight_messages = lane.in_flight_messages,
                          .is_empty = lane.slice_bytes == 0,
                          .start_ps = start_ps,
                          .done_ps = done_ps,
                          .slower_overhead_ps = 0,
                          .usual_ps = SlicePs(lane)};
  if (lane.peers != kNone) {
    slice.receives = lane_peers_[lane.peers].receives;
    slice.sends = lane_peers_[lane.peers].sends;
  }
  const int64_t at_full_speed_ps = costs_[lane.costs].costs.slice_overhead_ps / lane.steps_at_once;
  slice.slower_overhead_ps = OverheadPs(lane) - at_full_speed_ps;
  paths_->OnSlice(slice);
}

int64_t LaneExecutor::SlowedPs(const Lane& lane, int64_t time_ps) const {
  return AtSpeedOfGpuPs(GpuOf(lane), time_ps);
}

int64_t LaneExecutor::AtSpeedOfGpuPs(uint32_t gpu, int64_t time_ps) const {
  const double speed = gpu_speeds_.empty() ? 1 : gpu_speeds_[gpu];
  return speed == 0 ? time_ps : AtShareOfSpeedPs(time_ps, speed);
}

bool LaneExecutor::StandsStill(uint32_t id) {
  if (gpu_speeds_[GpuOf(lanes_[id])] != 0) return false;
  if (paths_) paths_->StandStill(id);
  if (std::find(still_lanes_.begin(), still_lanes_.end(), id) == still_lanes_.end()) {
    still_lanes_.push_back(id);
  }
  return true;
}

void LaneExecutor::SetGpuSpeed(uint32_t gpu, double speed) {
  if (gpu_speeds_.empty()) gpu_speeds_.assign(graph_.gpus().size(), 1);
  gpu_speeds_[gpu] = speed;
  if (speed == 0) return;
  const auto goes_on = [&](uint32_t id) { return GpuOf(lanes_[id]) == gpu; };
  for (const uint32_t id : still_lanes_) {
    if (goes_on(id)) Wake(id);
  }
  std::erase_if(still_lanes_, goes_on);
  RunWoken();
}

MessageSize LaneExecutor::SizeOf(uint8_t costs, uint64_t data_bytes) const {
  const CostClass& lines = costs_[costs];
  if (lines.line_payload_bytes == 1) return MessageSize::OfData(data_bytes);
  const uint64_t count = (data_bytes + lines.line_payload_bytes - 1) / lines.line_payload_bytes;
  return {count * lines.line_wire_bytes, data_bytes};
}

void LaneExecutor::RunSlice(Lane& lane, int64_t done_ps) {
  lane.free_ps = done_ps;
  if (lane.peers == kNone) [[likely]] {
    if (lane.receives) Consume(lane, lane.receive_connection, done_ps);
    if (lane.sends) Send(lane, lane.send_connection, done_ps);
    return;
  }
  const Peers& peers = lane_peers_[lane.peers];
  for (const uint32_t connection : peers.receives) Consume(lane, connection, done_ps);
  if (!peers.results.empty()) SendBySwitch(lane, peers.results, done_ps);
  for (const uint32_t connection : peers.sends) {
    if (!table_.connection(connection).is_switch_result) Send(lane, connection, done_ps);
  }
}

bool LaneExecutor::PostLoads(Lane& lane) {
  const auto post = [&](uint32_t connection) {
    const uint32_t flow = table_.connection(connection).load_flow;
    if (flow == kNone) return;
    load_store_.Post(flow, SizeOf(lane.costs, lane.slice_bytes));
    SIM_CHECK(++lane.loading > 0, "a lane that loads from too many at a time");
  };
  if (lane.peers != kNone) {
    for (const uint32_t connection : lane_peers_[lane.peers].receives) post(connection);
  } else if (lane.receives) {
    post(lane.receive_connection);
  }
  return lane.loading > 0;
}

void LaneExecutor::PostLoadsAhead(Lane& lane) {
  if (lane.is_loaded || lane.loading > 0 || lane.steps_left == 0 || lane.slice_bytes == 0) return;
  const auto is_seen = [&](uint32_t connection) {
    const MessageSlots& from = table_.slots(connection);
    return from.delivered != from.consumed &&
           from.time_ps[from.consumed % kConnectionSlots] <= engine_.NowPs();
  };
  if (lane.peers == kNone) {
    if (!lane.receives || !is_seen(lane.receive_connection)) return;
  } else {
    const std::vector<uint32_t>& receives = lane_peers_[lane.peers].receives;
    if (!std::all_of(receives.begin(), receives.end(), is_seen)) return;
  }
  PostLoads(lane);
}

void LaneExecutor::OnLoaded(uint32_t connection) {
  if (table_.slots(connection).is_closed) [[unlikely]]
    return;
  const MessageSlots& slots = table_.slots(connection);
  if (paths_) [[unlikely]]
    paths_->OnLoaded(connection, slots.consumed % kConnectionSlots);
  Lane& lane = lanes_[slots.receiver];
  if (--lane.loading > 0) return;
  lane.is_loaded = true;
  Wake(slots.receiver);
}

void LaneExecutor::Consume(const Lane& lane, uint32_t connection, int64_t done_ps) {
  MessageSlots& from = table_.slots(connection);
  const uint32_t slot = from.consumed++ % kConnectionSlots;
  SIM_CHECK(from.sizes[slot] == MarkOf(lane.slice_bytes),
            "a slice was received that is not the one that was sent");
  table_.taken_bytes(connection) +=
      lane.peers == kNone ? lane.slice_bytes : CountTaken(lane, connection);
  if (paths_) [[unlikely]]
    paths_->OnTaken(IdOf(lane), connection, slot, lane.free_ps);
  if (!watched_.empty() && watched_.contains(table_.connection(connection).collective))
      [[unlikely]] {
    observer_.OnPayloadTaken(table_.connection(connection).collective, lane.slice_bytes);
  }
  if (from.network) {
    SchedulePost(done_ps, connection, PostPhase::kGranted);
  } else {
    from.time_ps[slot] = done_ps + from.flag_latency_ps;
    WakeSender(from);
  }
}

void LaneExecutor::Send(Lane& lane, uint32_t connection, int64_t done_ps) {
  MessageSlots& to = table_.slots(connection);
  const uint32_t slot = to.posted++ % kConnectionSlots;
  if (to.network) {
    StagedMessages& staged = table_.staged(table_.connection(connection));
    staged.bytes[slot] = lane.slice_bytes;
    staged.time_ps[slot] = done_ps;
  } else {
    to.sizes[slot] = MarkOf(lane.slice_bytes);
    to.time_ps[slot] = done_ps;
  }
  to.costs = lane.costs;
  if (paths_) [[unlikely]]
    paths_->OnSent(IdOf(lane), connection, slot);
  bool over_nvlink = lane.sends_over_nvlink;
  uint32_t flow = lane.send_flow;
  if (lane.peers != kNone) {
    const Connection& used = table_.connection(connection);
    if (used.is_switch_operand) {
      OnStoreArrival(connection);  // a flag says that the data is there
      return;
    }
    if (used.is_network_sum) {
      SendToTree(lane, connection, done_ps);
      return;
    }
    over_nvlink = !used.network || used.is_relayed;
    flow = used.is_relayed ? used.relay_flow : used.flow;
  }
  if (!over_nvlink) {
    SchedulePost(done_ps + costs_[lane.costs].costs.LatencyBeforePostPs(), connection,
                 PostPhase::kStaged);
  } else if (lane.slice_bytes != 0) {
    load_store_.Post(flow, SizeOf(lane.costs, lane.slice_bytes));
    ++lane.awaits;
  } else if (Ahead(to.posted, to.network ? to.progress.relayed : to.delivered) == 1) {
    OnStoreArrival(connection);
  }
}

void LaneExecutor::SchedulePost(int64_t time_ps, uint32_t id, PostPhase phase) {
  if (time_ps == engine_.NowPs()) {
    OnPost(id, phase);
    return;
  }
  engine_.ScheduleFabric(time_ps, event_order::kPost, table_.connection(id).tie,
                         id << kPostPhaseBits | static_cast<uint32_t>(phase));
}

void LaneExecutor::OnPost(uint32_t id, PostPhase phase) {
  MessageSlots& slots = table_.slots(id);
  if (slots.is_closed) [[unlikely]]
    return;
  switch (phase) {
    case PostPhase::kStaged:
      if (!slots.network) [[unlikely]] {
        SchedulePost(ProxyPostedPs(table_.connection(id).from_gpu), id, PostPhase::kPosted);
        break;
      }
      ++slots.progress.staged;
      QueueAtProxy(id);
      break;
    case PostPhase::kPosted: {
      const uint32_t slot = slots.progress.sent++ % kConnectionSlots;
      const uint32_t bytes = table_.staged(table_.connection(id)).bytes[slot];
      if (!slots.network) [[unlikely]] {
        const Connection& connection = table_.connection(id);
        aggregation_.Post(connection.flow, table_.aggregations(connection)[slot]);
        break;
      }
      slots.sizes[slot] = MarkOf(bytes);
      if (paths_) [[unlikely]]
        paths_->OnPosted(id, slot);
      const Connection& connection = table_.connection(id);
      const MessageSize size = SizeOf(slots.costs, bytes);
      connection.transport->Post(
          connection.flow,
          {.size = size, .tolerance_ppm = connection.loss_tolerance_ppm, .label = MarkOf(bytes)});
      break;
    }
    case PostPhase::kGranted:
      if (slots.receiver != kNone) GrantMessages(slots.receiver, id);
      break;
  }
}

void LaneExecutor::QueueAtProxy(uint32_t id) {
  NetworkProgress& progress = table_.slots(id).progress;
  const bool waits_for_grants = !table_.connection(id).is_buffered;
  while (progress.queued != progress.staged &&
         (progress.queued != progress.clear_to_send || !waits_for_grants)) {
    if (paths_ && waits_for_grants) [[unlikely]]
      paths_->OnQueued(id, progress.queued % kConnectionSlots);
    ++progress.queued;
    SchedulePost(ProxyPostedPs(table_.connection(id).injecting_gpu), id, PostPhase::kPosted);
  }
}

}  // namespace railyard
