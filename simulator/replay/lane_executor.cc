// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/lane_executor.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "topologies/mix64.h"

namespace railyard {
namespace {

// Ties among events of one class and picosecond are broken by what they are of, never by when it
// was made: a run with a fault and one without number their connections differently.
uint64_t TieOf(uint64_t a, uint64_t b, uint64_t c) {
  return Mix64(Mix64(Mix64(a) ^ b) ^ c) >> (64 - FabricSimulatorImpl::kIdBits);
}

uint64_t ServerAndIndex(int32_t server, uint32_t local_index) {
  return static_cast<uint64_t>(server) << 32 | local_index;
}

}  // namespace

LaneExecutor::LaneExecutor(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const GpuCosts& costs, const NicSettings& nic, LaneObserver& observer)
    : graph_(graph),
      network_(network),
      engine_(network.engine()),
      costs_(costs),
      observer_(observer),
      nvlink_(graph, network, *this),
      rdma_(graph, network, routing, nic, nvlink_.port_count(), *this),
      proxy_free_ps_(graph.gpus().size()) {
  for (uint32_t gpu = 0; gpu < graph.gpus().size(); ++gpu) {
    const Device& device = graph.device(graph.gpus()[gpu]);
    gpu_at_[ServerAndIndex(device.server, static_cast<uint32_t>(device.local_index))] = gpu;
  }
  engine_.SetHandler(EventClass::kPort, &LaneExecutor::HandlePort, this);
  engine_.SetHandler(EventClass::kTimer, &LaneExecutor::HandleTimer, this);
  engine_.SetHandler(EventClass::kPost, &LaneExecutor::HandlePost, this);
  engine_.SetHandler(EventClass::kChannel, &LaneExecutor::HandleChannel, this);
  static_assert(sizeof(MessageSlots) % (1u << kPostPhaseBits) == 0);
  const TimingWheel::PrefetchTable slots = {&slots_base_, sizeof(MessageSlots)};
  engine_.SetPrefetch(EventClass::kChannel,
                      {.records = {&lanes_base_, sizeof(Lane)},
                       .fields = {{{.offset = offsetof(Lane, receive_connection), .table = slots},
                                   {.offset = offsetof(Lane, send_connection), .table = slots}}}});
  engine_.SetPrefetch(
      EventClass::kPost,
      {.records = {&slots_base_, sizeof(MessageSlots) >> kPostPhaseBits}, .fields = {}});
}

// --- Events --------------------------------------------------------------------------------------

void LaneExecutor::HandlePort(void* self, uint32_t port) {
  auto& executor = *static_cast<LaneExecutor*>(self);
  const uint32_t nvlink_ports = executor.nvlink_.port_count();
  if (port < nvlink_ports) {
    executor.nvlink_.Serve(port);
  } else {
    executor.rdma_.Serve(port - nvlink_ports);
  }
}

void LaneExecutor::HandleTimer(void* self, uint32_t queue) {
  static_cast<LaneExecutor*>(self)->rdma_.OnTimer(queue);
}

void LaneExecutor::HandlePost(void* self, uint32_t target) {
  auto& executor = *static_cast<LaneExecutor*>(self);
  constexpr uint32_t kPhaseMask = (1u << kPostPhaseBits) - 1;
  executor.OnPost(target >> kPostPhaseBits, static_cast<PostPhase>(target & kPhaseMask));
}

void LaneExecutor::HandleChannel(void* self, uint32_t lane) {
  auto& executor = *static_cast<LaneExecutor*>(self);
  executor.Wake(lane);
  executor.RunWoken();
}

void LaneExecutor::OnPacketAtGpu(uint32_t packet) {
  if (IsNvlink(network_.packet(packet).kind)) {
    nvlink_.OnArrival(packet);
  } else {
    rdma_.OnPacketAtGpu(packet);
  }
}

void LaneExecutor::OnPacketDropped(uint32_t index, DropReason reason, LinkId link) {
  const Packet& packet = network_.packet(index);
  if (IsNvlink(packet.kind)) {
    nvlink_.OnDropped(packet, link);
  } else {
    rdma_.OnDropped(packet, reason, link);
  }
}

// --- Communicators and connections
// -----------------------------------------------------------------

uint32_t LaneExecutor::AddCommunicator(ExecutedCommunicator communicator) {
  communicators_.push_back({std::move(communicator), {}});
  return static_cast<uint32_t>(communicators_.size() - 1);
}

uint32_t LaneExecutor::ConnectionBetween(const Program& program, uint32_t channel, uint32_t from,
                                         uint32_t to) {
  const uint64_t key =
      uint64_t{program.p2p} << 63 | uint64_t{channel} << 48 | uint64_t{from} << 24 | to;
  const auto [it, is_new] = communicators_[program.communicator].connections.try_emplace(key, 0);
  if (is_new) it->second = OpenConnection(program, channel, from, to);
  return it->second;
}

uint32_t LaneExecutor::OpenConnection(const Program& program, uint32_t channel, uint32_t from,
                                      uint32_t to) {
  const ExecutedCommunicator& executed = communicators_[program.communicator].executed;
  const auto id = static_cast<uint32_t>(connections_.size());
  SIM_CHECK(id < 1u << (32 - kPostPhaseBits), "too many connections");
  Connection connection;
  MessageSlots slots;
  connection.from_gpu = executed.gpus[from];
  connection.to_gpu = executed.gpus[to];
  connection.injecting_gpu = connection.from_gpu;
  connection.tie = TieOf(uint64_t{program.communicator} << 8 | channel,
                         uint64_t{connection.from_gpu} << 32 | connection.to_gpu, program.p2p);
  const ConnectionRoute route = executed.planner->RouteOf(channel, from, to, program.p2p);
  connection.network = slots.network = route.network;
  if (route.network) {
    const Device& sender = graph_.device(graph_.gpus()[connection.from_gpu]);
    if (route.sending_local_index != static_cast<uint32_t>(sender.local_index)) {
      connection.is_relayed = true;
      connection.injecting_gpu = GpuOfServer(connection.from_gpu, route.sending_local_index);
      connection.relay_flow =
          nvlink_.Open(id | kRelayLeg, connection.from_gpu, connection.injecting_gpu);
      slots.flag_latency_ps = FlagLatencyPs(connection.relay_flow);
    }
    connection.flow = rdma_.Open(id, connection.injecting_gpu, connection.to_gpu, connection.tie);
  } else {
    connection.flow = nvlink_.Open(id, connection.from_gpu, connection.to_gpu);
    slots.flag_latency_ps = FlagLatencyPs(connection.flow);
  }
  connections_.push_back(connection);
  slots_.push_back(slots);
  slots_base_ = reinterpret_cast<const char*>(slots_.data());
  return id;
}

int64_t LaneExecutor::FlagLatencyPs(uint32_t nvlink_flow) const {
  return network_.PathLatencyPs(nvlink_.PathsOf(nvlink_flow).front().path, 0);
}

uint32_t LaneExecutor::GpuOfServer(uint32_t gpu, uint32_t local_index) const {
  return gpu_at_.at(ServerAndIndex(graph_.device(graph_.gpus()[gpu]).server, local_index));
}

std::vector<LinkId> LaneExecutor::LinksOf(const Connection& connection) const {
  std::vector<LinkId> links;
  const auto append = [&](PathRef path) {
    for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
      links.push_back(network_.LinkOfPath(path, hop));
    }
  };
  if (!connection.network) append(nvlink_.PathsOf(connection.flow).front().path);
  if (connection.is_relayed) append(nvlink_.PathsOf(connection.relay_flow).front().path);
  if (connection.network) append(rdma_.DataPath(connection.flow));
  return links;
}

// --- Programs, batches and lanes
// --------------------------------------------------------------------

uint32_t LaneExecutor::Start(const Program& program) {
  uint32_t channels = 0;
  std::vector<uint32_t> started;
  for (uint32_t c = 0; c < program.schedule->channel_count(); ++c) {
    if (program.schedule->BatchCount(program.rank, c) == 0) continue;
    uint32_t id = free_channel_;
    if (id == kNone) {
      id = static_cast<uint32_t>(active_channels_.size());
      active_channels_.emplace_back();
    } else {
      free_channel_ = active_channels_[id].next_free;
    }
    active_channels_[id] = {.program = program, .channel = c, .end_ps = engine_.NowPs()};
    started.push_back(id);
    ++channels;
  }
  for (const uint32_t id : started) StartBatch(id);
  RunWoken();
  return channels;
}

void LaneExecutor::StartBatch(uint32_t id) {
  const Program program = active_channels_[id].program;
  const uint32_t channel = active_channels_[id].channel;
  const uint32_t batches = program.schedule->BatchCount(program.rank, channel);
  uint32_t& batch = active_channels_[id].batch;
  // A batch may hold nothing but calls of the rank to itself, which are no lanes.
  uint32_t lanes = 0;
  while (batch < batches &&
         (lanes = program.schedule->LaneCount(program.rank, channel, batch)) == 0) {
    ++batch;
  }
  active_channels_[id].lanes_left = lanes;
  for (uint32_t lane = 0; lane < lanes; ++lane) StartLane(id, lane);
  if (lanes > 0) return;
  const int64_t end_ps = active_channels_[id].end_ps;
  active_channels_[id].next_free = free_channel_;
  free_channel_ = id;
  observer_.OnChannelFinished(program.operation, end_ps);
}

void LaneExecutor::StartLane(uint32_t active_channel, uint32_t lane_index) {
  uint32_t id = free_lane_;
  if (id == kNone) {
    id = static_cast<uint32_t>(lanes_.size());
    lanes_.emplace_back();
    lane_programs_.emplace_back();
    lanes_base_ = reinterpret_cast<const char*>(lanes_.data());
  } else {
    free_lane_ = lane_programs_[id].next_free;
  }
  const ActiveChannel& channel = active_channels_[active_channel];
  const Program& program = channel.program;
  LaneProgram& lane_program = lane_programs_[id];
  lane_program = {.schedule = program.schedule,
                  .id = {program.rank, channel.channel, channel.batch, lane_index},
                  .channel = active_channel};
  lane_program.step_count = program.schedule->StepCount(lane_program.id);
  const MessageRule& rule = program.schedule->message_rule();
  SIM_CHECK(
      rule.slices_per_chunk <= kConnectionSlots && rule.in_flight_messages <= kConnectionSlots,
      "more messages under way than a connection has slots");
  Lane& lane = lanes_[id];
  lane = Lane{};
  lane.free_ps = channel.end_ps;
  const uint32_t gpu = communicators_[program.communicator].executed.gpus[program.rank];
  lane.tie = TieOf(uint64_t{program.communicator} << 8 | channel.channel, gpu,
                   uint64_t{channel.batch} << 32 | lane_index);
  lane.slices_per_chunk = static_cast<uint8_t>(rule.slices_per_chunk);
  lane.in_flight_messages = static_cast<uint8_t>(rule.in_flight_messages);
  lane.in_use = true;
  LoadSteps(id);
  Wake(id);
}

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
  lane.first_bytes =
      static_cast<uint32_t>(SliceOf(program.schedule->message_rule(), step.bytes, 0).bytes);
  lane.receives = step.recv_from != kNoPeer;
  lane.sends = step.send_to != kNoPeer;
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

bool LaneExecutor::ClaimConnections(uint32_t id) {
  const auto claim = [this, id](int32_t peer, bool is_send) {
    uint32_t Lane::*const side = is_send ? &Lane::send_connection : &Lane::receive_connection;
    if (peer == kNoPeer || lanes_[id].*side != kNone) return true;
    const LaneId& lane_id = lane_programs_[id].id;
    const Program& program = active_channels_[lane_programs_[id].channel].program;
    const auto other = static_cast<uint32_t>(peer);
    const uint32_t connection =
        is_send ? ConnectionBetween(program, lane_id.channel, lane_id.rank, other)
                : ConnectionBetween(program, lane_id.channel, other, lane_id.rank);
    uint32_t MessageSlots::*const owner = is_send ? &MessageSlots::sender : &MessageSlots::receiver;
    if (slots_[connection].*owner != kNone) {
      claimants_[connection].push_back(id);
      return false;
    }
    slots_[connection].*owner = id;
    connections_[connection].collective = program.collective;
    lanes_[id].*side = connection;
    const Connection& claimed = connections_[connection];
    if (is_send) {
      lanes_[id].sends_over_nvlink = !claimed.network || claimed.is_relayed;
      lanes_[id].send_flow = claimed.is_relayed ? claimed.relay_flow : claimed.flow;
    } else if (claimed.network) {
      GrantMessages(id);
    }
    return true;
  };
  const LanePeers peers = lane_programs_[id].schedule->PeersOf(lane_programs_[id].id);
  lanes_[id].has_claimed = claim(peers.recv_from, false) && claim(peers.send_to, true);
  return lanes_[id].has_claimed;
}

void LaneExecutor::GrantMessages(uint32_t id) {
  const Lane& lane = lanes_[id];
  LaneProgram& program = lane_programs_[id];
  MessageSlots& slots = slots_[lane.receive_connection];
  while (Ahead(slots.progress.granted, slots.consumed) < lane.in_flight_messages) {
    if (program.grants_left == 0) {
      if (program.grant_step == program.step_count) return;
      const uint64_t alike = program.schedule->AlikeFrom(program.id, program.grant_step);
      if (program.schedule->StepAt(program.id, program.grant_step).recv_from != kNoPeer) {
        program.grants_left = alike * lane.slices_per_chunk;
      }
      program.grant_step += alike;
      continue;
    }
    --program.grants_left;
    ++slots.progress.granted;
    rdma_.PostClearToSend(connections_[lane.receive_connection].flow);
  }
}

void LaneExecutor::FinishLane(uint32_t id) {
  Lane& lane = lanes_[id];
  const auto release = [this](uint32_t connection, uint32_t MessageSlots::*owner) {
    if (connection == kNone) return;
    slots_[connection].*owner = kNone;
    const auto it = claimants_.find(connection);
    if (it == claimants_.end()) return;
    for (const uint32_t claimant : it->second) Wake(claimant);
    claimants_.erase(it);
  };
  release(lane.send_connection, &MessageSlots::sender);
  release(lane.receive_connection, &MessageSlots::receiver);
  const uint32_t channel_id = lane_programs_[id].channel;
  ActiveChannel& channel = active_channels_[channel_id];
  channel.end_ps = std::max(channel.end_ps, lane.free_ps);
  lane.in_use = false;
  lane_programs_[id].next_free = free_lane_;
  free_lane_ = id;
  if (--channel.lanes_left > 0) return;
  ++channel.batch;
  StartBatch(channel_id);
}

// --- Slices
// ----------------------------------------------------------------------------------------

void LaneExecutor::RunWoken() {
  if (running_woken_) return;  // further down the stack
  running_woken_ = true;
  for (size_t i = 0; i < woken_.size(); ++i) Advance(woken_[i]);
  woken_.clear();
  nvlink_.ServeDue();
  running_woken_ = false;
}

void LaneExecutor::Advance(uint32_t id) {
  for (;;) {
    if (lanes_[id].steps_left == 0) {
      FinishLane(id);
      return;
    }
    if (!lanes_[id].has_claimed && !ClaimConnections(id)) return;
    Lane& lane = lanes_[id];
    const int64_t start_ps = EarliestStartPs(lane);
    if (start_ps == kNeverPs) return;
    // A slice without bytes that follows upon the one before is part of the same event.
    const bool is_next = lane.slice_bytes == 0 && start_ps == lane.free_ps;
    if (start_ps > engine_.NowPs() && !is_next) {
      engine_.ScheduleFabric(start_ps, EventClass::kChannel, lane.tie, id);
      return;
    }
    RunSlice(lane, start_ps);
    NextSlice(id);
  }
}

int64_t LaneExecutor::EarliestStartPs(const Lane& lane) {
  int64_t start_ps = std::max(engine_.NowPs(), lane.free_ps);
  if (lane.receives) {
    MessageSlots& from = slots_[lane.receive_connection];
    if (from.delivered == from.consumed) {
      from.receiver_waits = true;
      return kNeverPs;
    }
    start_ps = std::max(start_ps, from.time_ps[from.consumed % kConnectionSlots]);
  }
  if (!lane.sends) return start_ps;
  MessageSlots& to = slots_[lane.send_connection];
  const uint8_t limit = lane.in_flight_messages;
  if (Ahead(to.posted, to.network ? to.progress.completed : to.consumed) >= limit) {
    to.sender_waits = true;
    return kNeverPs;
  }
  if (to.network) return start_ps;
  return std::max(start_ps, to.time_ps[Ahead(to.posted, limit) % kConnectionSlots]);
}

int64_t LaneExecutor::CopyPs(uint64_t bytes) {
  if (bytes == 0 || costs_.channel_rate_bps == 0) return 0;
  if (bytes != last_copy_bytes_) {
    last_copy_bytes_ = bytes;
    last_copy_ps_ = TransferTimePs(bytes, costs_.channel_rate_bps);
  }
  return last_copy_ps_;
}

void LaneExecutor::RunSlice(Lane& lane, int64_t start_ps) {
  const uint32_t bytes = lane.slice_bytes;
  const int64_t done_ps = start_ps + CopyPs(bytes);
  lane.free_ps = done_ps;
  if (lane.receives) {
    MessageSlots& from = slots_[lane.receive_connection];
    const uint32_t slot = from.consumed++ % kConnectionSlots;
    SIM_CHECK(from.bytes[slot] == bytes, "a slice was received that is not the one that was sent");
    connections_[lane.receive_connection].payload_bytes += bytes;
    if (from.network) {
      SchedulePost(done_ps, lane.receive_connection, PostPhase::kGranted);
    } else {
      from.time_ps[slot] = done_ps + from.flag_latency_ps;
      WakeSender(from);
    }
  }
  if (!lane.sends) return;
  MessageSlots& to = slots_[lane.send_connection];
  const uint32_t slot = to.posted++ % kConnectionSlots;
  to.bytes[slot] = bytes;
  to.time_ps[slot] = done_ps;
  if (!lane.sends_over_nvlink) {
    SchedulePost(done_ps + costs_.LatencyBeforePostPs(), lane.send_connection, PostPhase::kStaged);
  } else if (bytes != 0) {
    nvlink_.Post(lane.send_flow, bytes);
  } else if (Ahead(to.posted, to.network ? to.progress.relayed : to.delivered) == 1) {
    OnNvlinkArrival(lane.send_connection);
  }
}

void LaneExecutor::SchedulePost(int64_t time_ps, uint32_t id, PostPhase phase) {
  if (time_ps == engine_.NowPs()) {
    OnPost(id, phase);
    return;
  }
  engine_.ScheduleFabric(time_ps, EventClass::kPost, connections_[id].tie,
                         id << kPostPhaseBits | static_cast<uint32_t>(phase));
}

void LaneExecutor::OnPost(uint32_t id, PostPhase phase) {
  MessageSlots& slots = slots_[id];
  switch (phase) {
    case PostPhase::kStaged:
      ++slots.progress.staged;
      QueueAtProxy(id);
      break;
    case PostPhase::kPosted:
      rdma_.Post(connections_[id].flow, slots.bytes[slots.progress.sent++ % kConnectionSlots]);
      break;
    case PostPhase::kGranted:
      if (slots.receiver != kNone) GrantMessages(slots.receiver);
      break;
  }
}

void LaneExecutor::QueueAtProxy(uint32_t id) {
  NetworkProgress& progress = slots_[id].progress;
  int64_t& free_ps = proxy_free_ps_[connections_[id].injecting_gpu];
  while (progress.queued != progress.staged && progress.queued != progress.clear_to_send) {
    ++progress.queued;
    free_ps = std::max(free_ps, engine_.NowPs()) + costs_.proxy_post_latency_ps;
    SchedulePost(free_ps, id, PostPhase::kPosted);
  }
}

// --- What the transports say
// -------------------------------------------------------------------------

void LaneExecutor::OnMessageDelivered(uint32_t id) {
  const uint32_t connection = id & ~kRelayLeg;
  MessageSlots& slots = slots_[connection];
  if (slots.network && id == connection) {
    const int64_t seen_ps = engine_.NowPs() + costs_.LatencyAfterArrivalPs();
    slots.time_ps[slots.delivered++ % kConnectionSlots] = seen_ps;
    WakeReceiver(slots, seen_ps);
  } else {
    OnNvlinkArrival(connection);
  }
  RunWoken();
}

// A message is in the memory of the receiver, or of the GPU that relays it; the sender's copy may
// still be at work. The flags that follow it alone are seen behind it.
void LaneExecutor::OnNvlinkArrival(uint32_t id) {
  MessageSlots& slots = slots_[id];
  uint8_t& arrived = slots.network ? slots.progress.relayed : slots.delivered;
  const int64_t latency_ps =
      slots.network ? costs_.LatencyBeforePostPs() : costs_.nvlink_step_latency_ps;
  int64_t here_ps = 0;
  int64_t first_seen_ps = kNeverPs;
  do {
    const uint32_t slot = arrived++ % kConnectionSlots;
    const int64_t written_ps = slots.time_ps[slot];
    here_ps = std::max(here_ps, slots.bytes[slot] == 0 ? written_ps + slots.flag_latency_ps
                                                       : std::max(engine_.NowPs(), written_ps));
    slots.time_ps[slot] = here_ps + latency_ps;
    first_seen_ps = std::min(first_seen_ps, slots.time_ps[slot]);
    if (slots.network) SchedulePost(slots.time_ps[slot], id, PostPhase::kStaged);
  } while (arrived != slots.posted && slots.bytes[arrived % kConnectionSlots] == 0);
  if (!slots.network) WakeReceiver(slots, first_seen_ps);
}

// A lane that waits for data cannot start before it is seen; whether it can send then is looked at
// then.
void LaneExecutor::WakeReceiver(MessageSlots& slots, int64_t seen_ps) {
  if (!slots.receiver_waits) return;
  slots.receiver_waits = false;
  const Lane& lane = lanes_[slots.receiver];
  const int64_t start_ps = std::max(seen_ps, lane.free_ps);
  if (start_ps > engine_.NowPs()) {
    engine_.ScheduleFabric(start_ps, EventClass::kChannel, lane.tie, slots.receiver);
  } else {
    Wake(slots.receiver);
  }
}

void LaneExecutor::WakeSender(MessageSlots& slots) {
  if (!slots.sender_waits) return;
  slots.sender_waits = false;
  Wake(slots.sender);
}

void LaneExecutor::OnSendCompleted(uint32_t id) {
  ++slots_[id].progress.completed;
  WakeSender(slots_[id]);
  RunWoken();
}

void LaneExecutor::OnClearToSend(uint32_t id) {
  ++slots_[id].progress.clear_to_send;
  QueueAtProxy(id);
}

void LaneExecutor::OnPacketLost(uint32_t id, LinkId link) {
  observer_.OnPacketLost(id & ~kRelayLeg, link);
}

void LaneExecutor::OnRetransmission(uint32_t id) { observer_.OnRetransmission(id & ~kRelayLeg); }

void LaneExecutor::OnLossRecovered(uint32_t id) { observer_.OnLossRecovered(id & ~kRelayLeg); }

void LaneExecutor::OnConnectionError(uint32_t id, const std::string& why) {
  observer_.OnConnectionError(id & ~kRelayLeg, why);
}

std::vector<LaneExecutor::Waiting> LaneExecutor::WaitingLanes() const {
  std::vector<Waiting> waiting;
  for (uint32_t id = 0; id < lanes_.size(); ++id) {
    const Lane& lane = lanes_[id];
    if (!lane.in_use) continue;
    const LaneProgram& lane_program = lane_programs_[id];
    const Program& program = active_channels_[lane_program.channel].program;
    const LanePeers peers = lane_program.schedule->PeersOf(lane_program.id);
    const bool for_data =
        lane.receive_connection != kNone && slots_[lane.receive_connection].receiver_waits;
    const bool for_slot =
        lane.send_connection != kNone && slots_[lane.send_connection].sender_waits;
    if (lane.has_claimed && !for_data && !for_slot) continue;
    const uint32_t connection = for_data ? lane.receive_connection : lane.send_connection;
    const int32_t peer = for_data ? peers.recv_from : peers.send_to;
    if (peer == kNoPeer) continue;
    Waiting entry{.operation = program.operation,
                  .communicator = program.communicator,
                  .rank = program.rank,
                  .peer = static_cast<uint32_t>(peer),
                  .channel = lane_program.id.channel,
                  .for_data = for_data,
                  .transport = {}};
    if (connection != kNone && connections_[connection].network) {
      entry.transport = rdma_.Describe(connections_[connection].flow);
    }
    waiting.push_back(std::move(entry));
  }
  return waiting;
}

}  // namespace railyard
