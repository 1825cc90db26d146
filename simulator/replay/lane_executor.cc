// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/lane_executor.h"

#include <algorithm>

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
  executor.lanes_[lane].event_pending = false;
  executor.Wake(lane);
  executor.RunWoken();
}

void LaneExecutor::OnPacketAtGpu(uint32_t packet) {
  if (network_.packet(packet).kind == PacketKind::kNvlinkWrite) {
    nvlink_.OnArrival(packet);
  } else {
    rdma_.OnPacketAtGpu(packet);
  }
}

void LaneExecutor::OnPacketDropped(uint32_t index, DropReason reason, LinkId link) {
  const Packet& packet = network_.packet(index);
  if (packet.kind == PacketKind::kNvlinkWrite) {
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
  connection.from_gpu = executed.gpus[from];
  connection.to_gpu = executed.gpus[to];
  connection.injecting_gpu = connection.from_gpu;
  connection.tie = TieOf(uint64_t{program.communicator} << 8 | channel,
                         uint64_t{connection.from_gpu} << 32 | connection.to_gpu, program.p2p);
  const ConnectionRoute route = executed.planner->RouteOf(channel, from, to, program.p2p);
  connection.network = route.network;
  if (route.network) {
    const Device& sender = graph_.device(graph_.gpus()[connection.from_gpu]);
    if (route.sending_local_index != static_cast<uint32_t>(sender.local_index)) {
      connection.is_relayed = true;
      connection.injecting_gpu = GpuOfServer(connection.from_gpu, route.sending_local_index);
      connection.relay_flow =
          nvlink_.Open(id | kRelayLeg, connection.from_gpu, connection.injecting_gpu);
      connection.flag_latency_ps = FlagLatencyPs(connection.relay_flow);
    }
    connection.flow = rdma_.Open(id, connection.injecting_gpu, connection.to_gpu, connection.tie);
  } else {
    connection.flow = nvlink_.Open(id, connection.from_gpu, connection.to_gpu);
    connection.flag_latency_ps = FlagLatencyPs(connection.flow);
  }
  connections_.push_back(connection);
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
  } else {
    free_lane_ = lanes_[id].next_free;
  }
  const ActiveChannel& channel = active_channels_[active_channel];
  const Program& program = channel.program;
  Lane& lane = lanes_[id];
  lane = Lane{};
  lane.schedule = program.schedule;
  lane.id = {program.rank, channel.channel, channel.batch, lane_index};
  lane.channel = active_channel;
  lane.step_count = program.schedule->StepCount(lane.id);
  lane.free_ps = channel.end_ps;
  lane.in_use = true;
  const uint32_t gpu = communicators_[program.communicator].executed.gpus[program.rank];
  lane.tie = TieOf(uint64_t{program.communicator} << 8 | channel.channel, gpu,
                   uint64_t{channel.batch} << 32 | lane_index);
  if (lane.step_count > 0) LoadStep(lane);
  Wake(id);
}

void LaneExecutor::LoadStep(Lane& lane) {
  lane.step = lane.schedule->StepAt(lane.id, lane.step_index);
  lane.slice = SliceOf(lane.schedule->message_rule(), lane.step.bytes, lane.slice_index);
}

void LaneExecutor::NextSlice(Lane& lane) {
  const MessageRule& rule = lane.schedule->message_rule();
  if (++lane.slice_index < rule.slices_per_chunk) {
    lane.slice = SliceOf(rule, lane.step.bytes, lane.slice_index);
    return;
  }
  lane.slice_index = 0;
  if (++lane.step_index < lane.step_count) LoadStep(lane);
}

bool LaneExecutor::ClaimConnections(uint32_t id) {
  const auto claim = [this, id](int32_t peer, bool is_send) {
    uint32_t Lane::*const side = is_send ? &Lane::send_connection : &Lane::receive_connection;
    if (peer == kNoPeer || lanes_[id].*side != kNone) return true;
    const Lane& lane = lanes_[id];
    const Program& program = active_channels_[lane.channel].program;
    const auto other = static_cast<uint32_t>(peer);
    const uint32_t connection =
        is_send ? ConnectionBetween(program, lane.id.channel, lane.id.rank, other)
                : ConnectionBetween(program, lane.id.channel, other, lane.id.rank);
    uint32_t Connection::*const owner = is_send ? &Connection::sender : &Connection::receiver;
    if (connections_[connection].*owner != kNone) {
      claimants_[connection].push_back(id);
      return false;
    }
    connections_[connection].*owner = id;
    connections_[connection].collective = program.collective;
    lanes_[id].*side = connection;
    if (!is_send && connections_[connection].network) GrantMessages(lanes_[id]);
    return true;
  };
  const LanePeers peers = lanes_[id].schedule->PeersOf(lanes_[id].id);
  lanes_[id].has_claimed = claim(peers.recv_from, false) && claim(peers.send_to, true);
  return lanes_[id].has_claimed;
}

void LaneExecutor::GrantMessages(Lane& lane) {
  Connection& connection = connections_[lane.receive_connection];
  const MessageRule& rule = lane.schedule->message_rule();
  while (lane.grant_step < lane.step_count &&
         connection.granted - connection.consumed < rule.in_flight_messages) {
    if (lane.schedule->StepAt(lane.id, lane.grant_step).recv_from == kNoPeer) {
      ++lane.grant_step;
      continue;
    }
    ++connection.granted;
    rdma_.PostClearToSend(connection.flow);
    if (++lane.grant_slice == rule.slices_per_chunk) {
      lane.grant_slice = 0;
      ++lane.grant_step;
    }
  }
}

void LaneExecutor::FinishLane(uint32_t id) {
  Lane& lane = lanes_[id];
  const auto release = [this](uint32_t connection, uint32_t Connection::*owner) {
    if (connection == kNone) return;
    connections_[connection].*owner = kNone;
    const auto it = claimants_.find(connection);
    if (it == claimants_.end()) return;
    for (const uint32_t claimant : it->second) Wake(claimant);
    claimants_.erase(it);
  };
  release(lane.send_connection, &Connection::sender);
  release(lane.receive_connection, &Connection::receiver);
  const uint32_t channel_id = lane.channel;
  ActiveChannel& channel = active_channels_[channel_id];
  channel.end_ps = std::max(channel.end_ps, lane.free_ps);
  lane.in_use = false;
  lane.next_free = free_lane_;
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
  running_woken_ = false;
}

void LaneExecutor::Advance(uint32_t id) {
  while (lanes_[id].in_use && !lanes_[id].event_pending) {
    if (lanes_[id].step_index == lanes_[id].step_count) {
      FinishLane(id);
      return;
    }
    if (!lanes_[id].has_claimed && !ClaimConnections(id)) return;
    Lane& lane = lanes_[id];
    const int64_t start_ps = EarliestStartPs(lane);
    if (start_ps == kNeverPs) return;
    if (start_ps > engine_.NowPs()) {
      lane.event_pending = true;
      engine_.ScheduleFabric(start_ps, EventClass::kChannel, lane.tie, id);
      return;
    }
    RunSlice(lane);
    NextSlice(lane);
  }
}

int64_t LaneExecutor::EarliestStartPs(Lane& lane) {
  int64_t start_ps = std::max(engine_.NowPs(), lane.free_ps);
  if (lane.step.recv_from != kNoPeer) {
    Connection& from = connections_[lane.receive_connection];
    if (from.delivered == from.consumed) {
      from.receiver_waits = true;
      return kNeverPs;
    }
    start_ps = std::max(start_ps, from.ready_ps[from.consumed % Connection::kSlots]);
  }
  if (lane.step.send_to == kNoPeer) return start_ps;
  Connection& to = connections_[lane.send_connection];
  const uint32_t limit = lane.schedule->message_rule().in_flight_messages;
  if (to.network) {
    if (to.posted - to.completed < limit) return start_ps;
    to.sender_waits = true;
    return kNeverPs;
  }
  if (to.posted - to.consumed >= limit) {
    to.sender_waits = true;
    return kNeverPs;
  }
  return std::max(start_ps, to.free_ps[(to.posted - limit) % Connection::kSlots]);
}

int64_t LaneExecutor::CopyPs(uint64_t bytes) {
  if (costs_.channel_rate_bps == 0) return 0;
  if (bytes != last_copy_bytes_) {
    last_copy_bytes_ = bytes;
    last_copy_ps_ = TransferTimePs(bytes, costs_.channel_rate_bps);
  }
  return last_copy_ps_;
}

void LaneExecutor::RunSlice(Lane& lane) {
  const uint64_t bytes = lane.slice.bytes;
  const int64_t done_ps = engine_.NowPs() + CopyPs(bytes);
  lane.free_ps = done_ps;
  if (lane.step.recv_from != kNoPeer) {
    Connection& from = connections_[lane.receive_connection];
    const uint32_t slot = from.consumed++ % Connection::kSlots;
    SIM_CHECK(from.bytes[slot] == bytes, "a slice was received that is not the one that was sent");
    from.payload_bytes += bytes;
    if (from.network) {
      SchedulePost(done_ps, lane.receive_connection, PostPhase::kGranted);
    } else {
      from.free_ps[slot] = done_ps + from.flag_latency_ps;
      WakeSender(from);
    }
  }
  if (lane.step.send_to == kNoPeer) return;
  Connection& to = connections_[lane.send_connection];
  const uint32_t slot = to.posted++ % Connection::kSlots;
  to.bytes[slot] = static_cast<uint32_t>(bytes);
  to.ready_ps[slot] = done_ps;
  if (to.network && !to.is_relayed) {
    SchedulePost(done_ps + costs_.LatencyBeforePostPs(), lane.send_connection, PostPhase::kStaged);
  } else if (bytes != 0) {
    nvlink_.Post(to.network ? to.relay_flow : to.flow, bytes);
  } else if ((to.network ? to.relayed : to.delivered) + 1 == to.posted) {
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
  Connection& connection = connections_[id];
  switch (phase) {
    case PostPhase::kStaged:
      ++connection.staged;
      QueueAtProxy(id);
      break;
    case PostPhase::kPosted:
      rdma_.Post(connection.flow, connection.bytes[connection.sent++ % Connection::kSlots]);
      break;
    case PostPhase::kGranted:
      if (connection.receiver != kNone) GrantMessages(lanes_[connection.receiver]);
      break;
  }
}

void LaneExecutor::QueueAtProxy(uint32_t id) {
  Connection& connection = connections_[id];
  int64_t& free_ps = proxy_free_ps_[connection.injecting_gpu];
  while (connection.queued != connection.staged && connection.queued != connection.clear_to_send) {
    ++connection.queued;
    free_ps = std::max(free_ps, engine_.NowPs()) + costs_.proxy_post_latency_ps;
    SchedulePost(free_ps, id, PostPhase::kPosted);
  }
}

// --- What the transports say
// -------------------------------------------------------------------------

void LaneExecutor::OnMessageDelivered(uint32_t id) {
  const uint32_t connection_id = id & ~kRelayLeg;
  Connection& connection = connections_[connection_id];
  if (connection.network && id == connection_id) {
    connection.ready_ps[connection.delivered++ % Connection::kSlots] =
        engine_.NowPs() + costs_.LatencyAfterArrivalPs();
    WakeReceiver(connection);
  } else {
    OnNvlinkArrival(connection_id);
  }
  RunWoken();
}

// A message is in the memory of the receiver, or of the GPU that relays it; the sender's copy may
// still be at work. The flags that follow it alone are seen after it.
void LaneExecutor::OnNvlinkArrival(uint32_t id) {
  Connection& connection = connections_[id];
  uint32_t& arrived = connection.network ? connection.relayed : connection.delivered;
  const int64_t latency_ps =
      connection.network ? costs_.LatencyBeforePostPs() : costs_.nvlink_step_latency_ps;
  do {
    const uint32_t slot = arrived++ % Connection::kSlots;
    const int64_t written_ps = connection.ready_ps[slot];
    const int64_t here_ps = connection.bytes[slot] == 0 ? written_ps + connection.flag_latency_ps
                                                        : std::max(engine_.NowPs(), written_ps);
    connection.seen_ps = std::max(connection.seen_ps, here_ps + latency_ps);
    connection.ready_ps[slot] = connection.seen_ps;
    if (connection.network) SchedulePost(connection.seen_ps, id, PostPhase::kStaged);
  } while (arrived != connection.posted && connection.bytes[arrived % Connection::kSlots] == 0);
  if (!connection.network) WakeReceiver(connection);
}

void LaneExecutor::WakeReceiver(Connection& connection) {
  if (!connection.receiver_waits) return;
  connection.receiver_waits = false;
  Wake(connection.receiver);
}

void LaneExecutor::WakeSender(Connection& connection) {
  if (!connection.sender_waits) return;
  connection.sender_waits = false;
  Wake(connection.sender);
}

void LaneExecutor::OnSendCompleted(uint32_t id) {
  ++connections_[id].completed;
  WakeSender(connections_[id]);
  RunWoken();
}

void LaneExecutor::OnClearToSend(uint32_t id) {
  ++connections_[id].clear_to_send;
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
  for (const Lane& lane : lanes_) {
    if (!lane.in_use || lane.event_pending) continue;
    const Program& program = active_channels_[lane.channel].program;
    const bool for_data =
        lane.receive_connection != kNone && connections_[lane.receive_connection].receiver_waits;
    const uint32_t connection = for_data ? lane.receive_connection : lane.send_connection;
    const int32_t peer = for_data ? lane.step.recv_from : lane.step.send_to;
    if (peer == kNoPeer) continue;
    Waiting entry{.operation = program.operation,
                  .communicator = program.communicator,
                  .rank = program.rank,
                  .peer = static_cast<uint32_t>(peer),
                  .channel = lane.id.channel,
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
