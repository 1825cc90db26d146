// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/lane_executor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"

namespace railyard {

LaneExecutor::LaneExecutor(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           int64_t proxy_post_latency_ps, const NicSettings& nic,
                           const NetIbSettings& net_ib, const NetSocketSettings& net_socket,
                           LaneObserver& observer)
    : graph_(graph),
      network_(network),
      engine_(network.engine()),
      proxy_post_latency_ps_(proxy_post_latency_ps),
      observer_(observer),
      nvlink_(graph, network, *this),
      rdma_(graph, network, routing, nic, nvlink_.port_count(), *this),
      striped_(graph, rdma_, engine_, nic, net_ib, kFirstStriped, *this),
      sockets_(rdma_, engine_, nic.mtu_bytes, net_socket, kFirstStriped, proxy_free_ps_, *this),
      is_socket_(net_socket.enabled),
      detours_(graph, nvlink_, rdma_, kFirstDetour, *this),
      aggregation_(graph, network, routing, nic, nvlink_.port_count() + rdma_.port_count(), *this),
      nvlink_connections_(graph.gpus().size()),
      communicator_counts_(graph.gpus().size()),
      proxy_free_ps_(graph.gpus().size()) {
  for (uint32_t gpu = 0; gpu < graph.gpus().size(); ++gpu) {
    const Device& device = graph.device(graph.gpus()[gpu]);
    const GpuPlace place = {static_cast<uint32_t>(device.server),
                            static_cast<uint32_t>(device.local_index)};
    places_.push_back(place);
    gpu_at_[ServerAndIndex(device.server, place.local_index)] = gpu;
  }
  engine_.SetHandler(EventClass::kPort, &LaneExecutor::HandlePort, this);
  engine_.SetHandler(EventClass::kTimer, &LaneExecutor::HandleTimer, this);
  engine_.SetHandler(EventClass::kPost, &LaneExecutor::HandlePost, this);
  engine_.SetHandler(EventClass::kChannel, &LaneExecutor::HandleChannel, this);
  static_assert(sizeof(MessageSlots) % (1u << kPostPhaseBits) == 0);
  const TimingWheel::PrefetchTable slots = {&slots_base_, sizeof(MessageSlots),
                                            offsetof(MessageSlots, time_ps)};
  const TimingWheel::PrefetchTable flows = nvlink_.FlowTable();
  engine_.SetPrefetch(EventClass::kChannel,
                      {.records = {&lanes_base_, sizeof(Lane)},
                       .fields = {{{.offset = offsetof(Lane, receive_connection), .table = slots},
                                   {.offset = offsetof(Lane, send_connection), .table = slots},
                                   {.offset = offsetof(Lane, send_flow), .table = flows}}}});
  network_.FetchFlowsAhead(flows);
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
    executor.RunWoken();
  } else if (port - nvlink_ports < executor.rdma_.port_count()) {
    executor.rdma_.Serve(port - nvlink_ports);
  } else {
    executor.aggregation_.Serve(port - nvlink_ports - executor.rdma_.port_count());
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
  const Lane& woken = executor.lanes_[lane];
  if (woken.peers == kNone && woken.sends_over_nvlink) {
    executor.nvlink_.FetchLinks(woken.send_flow);
  }
  executor.Wake(lane);
  executor.RunWoken();
}

void LaneExecutor::OnPacketAtNic(uint32_t packet) {
  if (IsAggregate(network_.packet(packet).kind)) [[unlikely]] {
    aggregation_.OnPacketAtNic(packet);
  } else {
    rdma_.OnPacketAtNic(packet);
  }
}

void LaneExecutor::OnPacketInMemory(uint32_t packet) {
  const PacketKind kind = network_.packet(packet).kind;
  if (IsInServer(kind)) {
    nvlink_.OnArrival(packet);
  } else if (IsAggregate(kind)) [[unlikely]] {
    aggregation_.OnPacketInMemory(packet);
  } else {
    if (foreign_ != nullptr) [[unlikely]] {
      const Packet& arrived = network_.packet(packet);
      const bool is_foreign = rdma_.connection_of_queue(arrived.flow) >= kFirstForeign;
      if (is_foreign) foreign_bytes_ += arrived.payload_bytes;
    }
    rdma_.OnPacketInMemory(packet);
  }
}

void LaneExecutor::OnPacketDropped(uint32_t index, DropReason reason, LinkId link) {
  const Packet& packet = network_.packet(index);
  if (IsInServer(packet.kind)) {
    nvlink_.OnDropped(packet, link);
  } else if (IsAggregate(packet.kind)) {
    aggregation_.OnDropped(packet, link);
  } else {
    rdma_.OnDropped(packet, reason, link);
  }
}

// --- Communicators
// --------------------------------------------------------------------------------

uint32_t LaneExecutor::AddCommunicator(ExecutedCommunicator communicator) {
  std::vector<uint32_t> local_numbers;
  for (const uint32_t gpu : communicator.gpus) {
    local_numbers.push_back(communicator_counts_[gpu]++);
  }
  communicators_.push_back({.executed = std::move(communicator),
                            .local_numbers = std::move(local_numbers),
                            .connections = {}});
  return static_cast<uint32_t>(communicators_.size() - 1);
}

uint8_t LaneExecutor::AddCosts(const StepCosts& costs, const MessageRule& rule) {
  const CostClass added = {costs, rule.line_payload_bytes, rule.line_wire_bytes};
  const auto found = std::find(costs_.begin(), costs_.end(), added);
  const auto number = static_cast<size_t>(found - costs_.begin());
  SIM_CHECK(number <= UINT8_MAX, "too many kinds of costs");
  if (found == costs_.end()) costs_.push_back(added);
  return static_cast<uint8_t>(number);
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
    if (paths_) [[unlikely]]
      TraceChannelStart(id);
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
  observer_.OnChannelFinished(program.operation, end_ps, paths_ ? &paths_->channels[id] : nullptr);
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
  const Communicator& communicator = communicators_[program.communicator];
  const uint32_t gpu = communicator.executed.gpus[program.rank];
  const GpuPlace& place = places_[gpu];
  lane.tie =
      TieOf(place.server, uint64_t{communicator.local_numbers[program.rank]} << 8 | channel.channel,
            place.local_index, uint64_t{channel.batch} << 32 | lane_index);
  lane.slices_per_chunk = static_cast<uint8_t>(rule.slices_per_chunk);
  lane.in_flight_messages = static_cast<uint8_t>(rule.in_flight_messages);
  lane.costs = program.costs;
  lane.warp_share = static_cast<uint8_t>(
      std::min<uint32_t>(program.schedule->WarpShareOf(lane_program.id), UINT8_MAX));
  lane.steps_at_once = static_cast<uint8_t>(
      std::min<uint32_t>(program.schedule->StepsAtOnce(lane_program.id), UINT8_MAX));
  lane.free_ps -= OverheadPs(lane);  // there is no slice before the first
  lane.in_use = true;
  if (paths_) [[unlikely]]
    TraceLaneStart(id);
  const LanePeers peers = program.schedule->PeersOf(lane_program.id);
  if (peers.recv_from.size() > 1 || peers.send_to.size() > 1) TakePeers(id, peers);
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

void LaneExecutor::TakePeers(uint32_t id, const LanePeers& listed) {
  uint32_t index = free_peers_;
  if (index == kNone) {
    index = static_cast<uint32_t>(lane_peers_.size());
    lane_peers_.emplace_back();
  } else {
    free_peers_ = lane_peers_[index].next_free;
  }
  Peers& peers = lane_peers_[index];
  peers.receive_connections.assign(listed.recv_from.size(), kNone);
  peers.send_connections.assign(listed.send_to.size(), kNone);
  peers.grants.assign(listed.recv_from.size(), {});
  peers.listed = listed;
  lanes_[id].peers = index;
}

bool LaneExecutor::Claim(uint32_t id, uint32_t connection, bool is_send) {
  uint32_t MessageSlots::*const owner = is_send ? &MessageSlots::sender : &MessageSlots::receiver;
  MessageSlots& slots = slots_[connection];
  if (slots.*owner == id) return true;
  if (slots.*owner != kNone) {
    claimants_[connection].push_back(id);
    return false;
  }
  slots.*owner = id;
  Connection& claimed = connections_[connection];
  const Program& program = active_channels_[lane_programs_[id].channel].program;
  claimed.collective = program.collective;
  if (is_send) claimed.loss_tolerance_ppm = program.loss_tolerance_ppm;
  StartFlowsOver(claimed, is_send);
  return true;
}

void LaneExecutor::StartFlowsOver(const Connection& connection, bool is_send) {
  if (connection.is_switch_operand || connection.is_switch_result) {
    // Whoever takes a sum asks for it.
    const bool is_users = is_send == connection.is_switch_result;
    if (is_users && connection.flow != kNone) nvlink_.StartGroupOver(connection.flow);
    return;
  }
  if (!is_send || connection.is_network_sum) return;
  if (!connection.network) nvlink_.StartOver(connection.flow);
  if (connection.is_relayed) nvlink_.StartOver(connection.relay_flow);
  if (!connection.is_detoured) return;
  for (const NicDetours::Legs& legs : detours_.LegsOf(connection.flow)) {
    if (legs.to_sender != kNone) nvlink_.StartOver(legs.to_sender);
    if (legs.from_receiver != kNone) nvlink_.StartOver(legs.from_receiver);
  }
}

bool LaneExecutor::ClaimConnections(uint32_t id) {
  const LaneId lane_id = lane_programs_[id].id;
  const Program program = active_channels_[lane_programs_[id].channel].program;
  const LanePeers peers = program.schedule->PeersOf(lane_id);
  const uint32_t several = lanes_[id].peers;
  // What the network adds up, or has added up, a rank has one connection for: its own.
  const auto is_of_others = [&](const LanePeer& peer) {
    return peer.use == ConnectionUse::kNetworkSum && peer.rank != lane_id.rank;
  };
  for (size_t i = 0; i < peers.recv_from.size(); ++i) {
    if (is_of_others(peers.recv_from[i])) continue;
    const uint32_t connection = ConnectionBetween(program, lane_id.channel, peers.recv_from[i].rank,
                                                  lane_id.rank, peers.recv_from[i].use);
    if (slots_[connection].receiver == id) continue;
    if (!Claim(id, connection, false)) return false;
    if (connections_[connection].load_flow != kNone) lanes_[id].loads = true;
    if (several != kNone) lane_peers_[several].receive_connections[i] = connection;
    if (i == 0) lanes_[id].receive_connection = connection;
    if (slots_[connection].network) GrantMessages(id, connection);
  }
  for (size_t i = 0; i < peers.send_to.size(); ++i) {
    if (is_of_others(peers.send_to[i])) continue;
    const uint32_t connection = ConnectionBetween(program, lane_id.channel, lane_id.rank,
                                                  peers.send_to[i].rank, peers.send_to[i].use);
    if (!Claim(id, connection, true)) return false;
    if (several != kNone) lane_peers_[several].send_connections[i] = connection;
    if (i > 0) continue;
    const Connection& claimed = connections_[connection];
    lanes_[id].send_connection = connection;
    lanes_[id].sends_over_nvlink = !claimed.network || claimed.is_relayed;
    lanes_[id].send_flow = claimed.is_relayed ? claimed.relay_flow : claimed.flow;
  }
  lanes_[id].has_claimed = true;
  if (several != kNone && lanes_[id].steps_left > 0) SetStepPeers(id);
  return true;
}

void LaneExecutor::SetStepPeers(uint32_t id) {
  const LaneProgram& program = lane_programs_[id];
  const Step step = program.schedule->StepAt(program.id, program.next_step - lanes_[id].steps_left);
  Peers& peers = lane_peers_[lanes_[id].peers];
  const LanePeers& listed = peers.listed;
  const auto select = [](int32_t named, const std::vector<LanePeer>& ranks,
                         const std::vector<uint32_t>& connections, ConnectionUse by_switch,
                         std::vector<uint32_t>& used, std::vector<uint32_t>& used_by_switch) {
    used.clear();
    used_by_switch.clear();
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (named != kAllPeers && named != static_cast<int32_t>(ranks[i].rank)) continue;
      if (connections[i] == kNone) continue;
      used.push_back(connections[i]);
      if (ranks[i].use == by_switch) used_by_switch.push_back(connections[i]);
    }
  };
  // Whoever leaves an operand for the switch, or takes a result from it, does so by itself.
  select(step.recv_from, listed.recv_from, peers.receive_connections, ConnectionUse::kSwitchOperand,
         peers.receives, peers.operands);
  select(step.send_to, listed.send_to, peers.send_connections, ConnectionUse::kSwitchResult,
         peers.sends, peers.results);
}

void LaneExecutor::GrantMessages(uint32_t id, uint32_t connection) {
  const Lane& lane = lanes_[id];
  LaneProgram& program = lane_programs_[id];
  Grants* grants = &program.grants;
  int32_t sender = kAllPeers;
  if (lane.peers != kNone) {
    Peers& peers = lane_peers_[lane.peers];
    const auto found =
        std::find(peers.receive_connections.begin(), peers.receive_connections.end(), connection);
    const auto index = static_cast<size_t>(found - peers.receive_connections.begin());
    grants = &peers.grants[index];
    sender = static_cast<int32_t>(peers.listed.recv_from[index].rank);
  }
  MessageSlots& slots = slots_[connection];
  while (Ahead(slots.progress.granted, slots.consumed) < lane.in_flight_messages) {
    if (grants->left == 0) {
      if (grants->step == program.step_count) return;
      const uint64_t alike = program.schedule->AlikeFrom(program.id, grants->step);
      const int32_t named = program.schedule->StepAt(program.id, grants->step).recv_from;
      if (named != kNoPeer && (named == kAllPeers || sender == kAllPeers || named == sender)) {
        grants->left = alike * lane.slices_per_chunk;
      }
      grants->step += alike;
      continue;
    }
    --grants->left;
    if (paths_) [[unlikely]]
      TraceGrant(connection);
    ++slots.progress.granted;
    const Connection& granted = connections_[connection];
    if (is_socket_) [[unlikely]] {
      sockets_.PostReceive(granted.flow);
    } else if (granted.is_striped) [[unlikely]] {
      striped_.PostClearToSend(granted.flow);
    } else if (granted.is_detoured) [[unlikely]] {
      detours_.PostClearToSend(granted.flow);
    } else {
      rdma_.PostClearToSend(granted.flow);
    }
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
  if (lane.peers == kNone) {
    release(lane.send_connection, &MessageSlots::sender);
    release(lane.receive_connection, &MessageSlots::receiver);
  } else {
    Peers& peers = lane_peers_[lane.peers];
    for (const uint32_t connection : peers.send_connections) {
      release(connection, &MessageSlots::sender);
    }
    for (const uint32_t connection : peers.receive_connections) {
      release(connection, &MessageSlots::receiver);
    }
    peers.next_free = free_peers_;
    free_peers_ = lane.peers;
  }
  const uint32_t channel_id = lane_programs_[id].channel;
  ActiveChannel& channel = active_channels_[channel_id];
  channel.end_ps = std::max(channel.end_ps, lane.free_ps);
  if (paths_) [[unlikely]]
    TraceLaneEnd(id);
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
  do {
    for (size_t i = 0; i < woken_.size(); ++i) Advance(woken_[i]);
    woken_.clear();
    nvlink_.ServeDue();  // may wake lanes whose messages have left
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
      engine_.ScheduleFabric(start_ps, EventClass::kChannel, lane.tie, id);
      return;
    }
    if (lane.peers != kNone && !lane_peers_[lane.peers].operands.empty() && lane.slice_bytes != 0) {
      const int64_t done_ps = start_ps + AtSpeedPs(lane, SlicePs(lane));
      if (paths_) [[unlikely]]
        TraceSlice(lane, start_ps, done_ps);
      RequestSum(lane, done_ps);
      return;
    }
    if (lane.loads && !lane.is_loaded && lane.slice_bytes != 0 && PostLoads(lane)) return;
    lane.is_loaded = false;
    const int64_t done_ps = start_ps + AtSpeedPs(lane, SlicePs(lane));
    if (paths_) [[unlikely]]
      TraceSlice(lane, start_ps, done_ps);
    RunSlice(lane, done_ps);
    NextSlice(id);
  }
}

int64_t LaneExecutor::EarliestStartPs(const Lane& lane) {
  int64_t start_ps = lane.free_ps;
  if (lane.slice_bytes != 0) start_ps += OverheadPs(lane);
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
  MessageSlots& from = slots_[connection];
  if (from.delivered == from.consumed) {
    from.receiver_waits = true;
    from.receiver_free_ps = lane.free_ps;
    from.receiver_tie = lane.tie;
    return kNeverPs;
  }
  return from.time_ps[from.consumed % kConnectionSlots];
}

int64_t LaneExecutor::SendablePs(const Lane& lane, uint32_t connection) {
  MessageSlots& to = slots_[connection];
  const uint8_t limit = lane.in_flight_messages;
  if (Ahead(to.posted, to.network ? to.progress.completed : to.consumed) >= limit) {
    to.sender_waits = true;
    return kNeverPs;
  }
  return to.network ? 0 : to.time_ps[Ahead(to.posted, limit) % kConnectionSlots];
}

int64_t LaneExecutor::SlicePs(const Lane& lane) {
  if (lane.slice_bytes == 0) return 0;
  const uint64_t key =
      uint64_t{lane.costs} << 40 | uint64_t{lane.warp_share} << 32 | lane.slice_bytes;
  if (key != last_slice_key_) {
    const StepCosts& costs = costs_[lane.costs].costs;
    last_slice_key_ = key;
    uint64_t bytes = uint64_t{lane.slice_bytes} * lane.warp_share;
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
  return communicators_[program.communicator].executed.gpus[program.rank];
}

int64_t LaneExecutor::SlowedPs(const Lane& lane, int64_t time_ps) const {
  return AtSpeedOfGpuPs(GpuOf(lane), time_ps);
}

int64_t LaneExecutor::AtSpeedOfGpuPs(uint32_t gpu, int64_t time_ps) const {
  const double speed = gpu_speeds_.empty() ? 1 : gpu_speeds_[gpu];
  return speed == 0 ? time_ps : std::llround(static_cast<double>(time_ps) / speed);
}

bool LaneExecutor::StandsStill(uint32_t id) {
  if (gpu_speeds_[GpuOf(lanes_[id])] != 0) return false;
  if (paths_ && paths_->lanes[id].still_since_ps < 0) {
    paths_->lanes[id].still_since_ps = engine_.NowPs();
  }
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

int64_t LaneExecutor::ProxyDonePs(uint32_t gpu) {
  int64_t& free_ps = proxy_free_ps_[gpu];
  free_ps = std::max(free_ps, engine_.NowPs()) + proxy_post_latency_ps_;
  return free_ps;
}

uint64_t LaneExecutor::WireBytesOf(uint8_t costs, uint64_t payload_bytes) const {
  const CostClass& lines = costs_[costs];
  if (lines.line_payload_bytes == 1) return payload_bytes;
  return (payload_bytes + lines.line_payload_bytes - 1) / lines.line_payload_bytes *
         lines.line_wire_bytes;
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
    if (!connections_[connection].is_switch_result) Send(lane, connection, done_ps);
  }
}

bool LaneExecutor::PostLoads(Lane& lane) {
  const auto post = [&](uint32_t connection) {
    const uint32_t flow = connections_[connection].load_flow;
    if (flow == kNone) return;
    nvlink_.Post(flow, WireBytesOf(lane.costs, lane.slice_bytes));
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
    const MessageSlots& from = slots_[connection];
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
  if (slots_[connection].is_closed) [[unlikely]]
    return;
  const MessageSlots& slots = slots_[connection];
  if (paths_) [[unlikely]] {
    PathsOf(connection)
        .arrived[slots.consumed % kConnectionSlots]
        .ExtendTo(engine_.NowPs(), PathCause::kTransit);
  }
  Lane& lane = lanes_[slots.receiver];
  if (--lane.loading > 0) return;
  lane.is_loaded = true;
  Wake(slots.receiver);
}

void LaneExecutor::Consume(const Lane& lane, uint32_t connection, int64_t done_ps) {
  MessageSlots& from = slots_[connection];
  const uint32_t slot = from.consumed++ % kConnectionSlots;
  SIM_CHECK(from.sizes[slot] == MarkOf(lane.slice_bytes),
            "a slice was received that is not the one that was sent");
  taken_bytes_[connection] += lane.slice_bytes;
  if (paths_) [[unlikely]]
    TraceTake(lane, connection, slot);
  if (!watched_.empty() && watched_.contains(connections_[connection].collective)) [[unlikely]] {
    observer_.OnPayloadTaken(connections_[connection].collective, lane.slice_bytes);
  }
  if (from.network) {
    SchedulePost(done_ps, connection, PostPhase::kGranted);
  } else {
    from.time_ps[slot] = done_ps + from.flag_latency_ps;
    WakeSender(from);
  }
}

void LaneExecutor::Send(Lane& lane, uint32_t connection, int64_t done_ps) {
  MessageSlots& to = slots_[connection];
  const uint32_t slot = to.posted++ % kConnectionSlots;
  if (to.network) {
    StagedMessages& staged = staged_[connections_[connection].staged];
    staged.bytes[slot] = lane.slice_bytes;
    staged.time_ps[slot] = done_ps;
  } else {
    to.sizes[slot] = MarkOf(lane.slice_bytes);
    to.time_ps[slot] = done_ps;
  }
  to.costs = lane.costs;
  if (paths_) [[unlikely]]
    TraceSend(lane, connection, slot);
  bool over_nvlink = lane.sends_over_nvlink;
  uint32_t flow = lane.send_flow;
  if (lane.peers != kNone) {
    const Connection& used = connections_[connection];
    if (used.is_switch_operand) {
      OnNvlinkArrival(connection);  // a flag says that the data is there
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
    nvlink_.Post(flow, WireBytesOf(lane.costs, lane.slice_bytes));
    ++lane.awaits;
  } else if (Ahead(to.posted, to.network ? to.progress.relayed : to.delivered) == 1) {
    OnNvlinkArrival(connection);
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
  if (slots.is_closed) [[unlikely]]
    return;
  switch (phase) {
    case PostPhase::kStaged:
      if (!slots.network) [[unlikely]] {
        SchedulePost(ProxyDonePs(connections_[id].from_gpu), id, PostPhase::kPosted);
        break;
      }
      ++slots.progress.staged;
      QueueAtProxy(id);
      break;
    case PostPhase::kPosted: {
      const uint32_t slot = slots.progress.sent++ % kConnectionSlots;
      const uint32_t bytes = staged_[connections_[id].staged].bytes[slot];
      if (!slots.network) [[unlikely]] {
        aggregation_.Post(connections_[id].flow, WireBytesOf(slots.costs, bytes));
        break;
      }
      slots.sizes[slot] = MarkOf(bytes);
      if (paths_) [[unlikely]]
        TracePost(id, slot);
      const Connection& connection = connections_[id];
      const uint64_t wire_bytes = WireBytesOf(slots.costs, bytes);
      if (is_socket_) [[unlikely]] {
        sockets_.Post(connection.flow, wire_bytes, MarkOf(bytes));
      } else if (connection.is_striped) [[unlikely]] {
        striped_.Post(connection.flow, wire_bytes, connection.loss_tolerance_ppm);
      } else if (connection.is_detoured) [[unlikely]] {
        detours_.Post(connection.flow, wire_bytes, connection.loss_tolerance_ppm);
      } else {
        rdma_.Post(connection.flow, wire_bytes, connection.loss_tolerance_ppm);
      }
      break;
    }
    case PostPhase::kGranted:
      if (slots.receiver != kNone) GrantMessages(slots.receiver, id);
      break;
  }
}

void LaneExecutor::QueueAtProxy(uint32_t id) {
  NetworkProgress& progress = slots_[id].progress;
  while (progress.queued != progress.staged &&
         (is_socket_ || progress.queued != progress.clear_to_send)) {
    if (paths_ && !is_socket_) [[unlikely]]
      TraceQueued(id, progress.queued % kConnectionSlots);
    ++progress.queued;
    SchedulePost(ProxyDonePs(connections_[id].injecting_gpu), id, PostPhase::kPosted);
  }
}

// --- What the transports say
// -------------------------------------------------------------------------

void LaneExecutor::OnMessageDelivered(uint32_t id) {
  if (TransportListener* const owner = OwnerOf(id)) {
    owner->OnMessageDelivered(id);
    return;
  }
  const uint32_t connection = ConnectionOf(id);
  MessageSlots& slots = slots_[connection];
  if (slots.is_closed) [[unlikely]]
    return;
  if ((id & kSwitchSum) != 0) {
    if ((id & kRelayLeg) != 0) {
      OnNetworkSum(connection);
    } else {
      OnSwitchSum(connection);
    }
  } else if (slots.network && (id & kRelayLeg) == 0) {
    if (!IsInUse(id)) [[unlikely]]
      return;
    const int64_t seen_ps = ProxyDonePs(connections_[connection].to_gpu) +
                            costs_[slots.costs].costs.LatencyAfterArrivalPs();
    if (paths_) [[unlikely]]
      TraceNetworkArrival(connection, slots.delivered % kConnectionSlots, seen_ps);
    // Kernel buffers may hold more messages than there are slots: the size comes with each.
    if (is_socket_) [[unlikely]] {
      slots.sizes[slots.delivered % kConnectionSlots] =
          sockets_.DeliveredLabel(connections_[connection].flow);
    }
    slots.time_ps[slots.delivered++ % kConnectionSlots] = seen_ps;
    WakeReceiver(slots, seen_ps);
  } else if (!slots.network && (id & kLoadLeg) != 0) {
    OnLoaded(connection);
  } else {
    OnNvlinkArrival(connection);
  }
  RunWoken();
}

void LaneExecutor::OnMessageUnderWay(uint32_t id) {
  if (OwnerOf(id) != nullptr) [[unlikely]]
    return;
  const MessageSlots& slots = slots_[id & ~kRelayLeg];
  __builtin_prefetch(&slots, 1);
  __builtin_prefetch(&slots.time_ps, 1);
}

// A message is in the memory of the receiver, or of the GPU that relays it; the sender's copy may
// still be at work. The flags that follow it alone are seen behind it.
void LaneExecutor::OnNvlinkArrival(uint32_t id) {
  MessageSlots& slots = slots_[id];
  const StepCosts& costs = costs_[slots.costs].costs;
  // With Simple a flag follows the data; lines of LL and LL128 carry theirs and are taken as they
  // come. Operands for a switch stay where they are: nothing but the flag moves.
  const bool has_flag =
      costs_[slots.costs].line_payload_bytes == 1 || connections_[id].is_switch_operand;
  const auto here_after = [&](int64_t here_ps, int64_t written_ps, bool is_empty) {
    const int64_t seen_ps = written_ps + (is_empty || has_flag ? slots.flag_latency_ps : 0);
    return std::max({here_ps, seen_ps, engine_.NowPs()});
  };
  int64_t here_ps = 0;
  if (slots.network) {
    const StagedMessages& staged = staged_[connections_[id].staged];
    uint8_t& relayed = slots.progress.relayed;
    do {
      const uint32_t slot = relayed++ % kConnectionSlots;
      here_ps = here_after(here_ps, staged.time_ps[slot], staged.bytes[slot] == 0);
      if (paths_) [[unlikely]]
        PathsOf(id).sent[slot].ExtendTo(here_ps, PathCause::kTransit);
      SchedulePost(here_ps + costs.LatencyBeforePostPs(), id, PostPhase::kStaged);
    } while (relayed != slots.posted && staged.bytes[relayed % kConnectionSlots] == 0);
    return;
  }
  int64_t first_seen_ps = kNeverPs;
  do {
    const uint32_t slot = slots.delivered++ % kConnectionSlots;
    here_ps = here_after(here_ps, slots.time_ps[slot], slots.sizes[slot] == 0);
    slots.time_ps[slot] = here_ps + costs.nvlink_step_latency_ps;
    if (paths_) [[unlikely]] {
      LanePaths::OfConnection& paths = PathsOf(id);
      paths.arrived[slot] = paths.sent[slot];
      paths.arrived[slot].ExtendTo(slots.time_ps[slot], PathCause::kTransit);
    }
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
    engine_.ScheduleFabric(start_ps, EventClass::kChannel, slots.receiver_tie, slots.receiver);
  } else {
    Wake(slots.receiver);
  }
}

void LaneExecutor::WakeSender(MessageSlots& slots) {
  if (!slots.sender_waits) return;
  slots.sender_waits = false;
  Wake(slots.sender);
}

void LaneExecutor::OnMessageInjected(uint32_t id, int64_t left_ps) {
  if (OwnerOf(id) != nullptr) [[unlikely]]
    return;
  const uint32_t sender = slots_[id & ~kRelayLeg].sender;
  Lane& lane = lanes_[sender];
  lane.free_ps = std::max(lane.free_ps, left_ps);
  if (paths_) [[unlikely]]
    PathOfLane(lane).ExtendTo(left_ps, PathCause::kTransit);
  if (--lane.awaits == 0) Wake(sender);
}

void LaneExecutor::OnSendCompleted(uint32_t number) {
  if (TransportListener* const owner = OwnerOf(number)) {
    owner->OnSendCompleted(number);
    return;
  }
  const uint32_t id = ConnectionOf(number);
  if (slots_[id].is_closed || !IsInUse(number)) [[unlikely]]
    return;
  if (paths_) [[unlikely]]
    TraceCompletion(id, slots_[id].progress.completed % kConnectionSlots);
  ++slots_[id].progress.completed;
  WakeSender(slots_[id]);
  RunWoken();
}

void LaneExecutor::OnClearToSend(uint32_t number) {
  if (TransportListener* const owner = OwnerOf(number)) {
    owner->OnClearToSend(number);
    return;
  }
  const uint32_t id = ConnectionOf(number);
  if (slots_[id].is_closed || !IsInUse(number)) [[unlikely]]
    return;
  if (paths_) [[unlikely]]
    TraceArrivedGrant(id, slots_[id].progress.clear_to_send % kConnectionSlots);
  ++slots_[id].progress.clear_to_send;
  QueueAtProxy(id);
}

void LaneExecutor::OnPacketLost(uint32_t id, LinkId link) {
  if (TransportListener* const owner = OwnerOf(id)) {
    owner->OnPacketLost(id, link);
    return;
  }
  observer_.OnPacketLost(ConnectionOf(id), link);
}

void LaneExecutor::OnPacketRepeated(uint32_t id, uint32_t payload_bytes) {
  if (TransportListener* const owner = OwnerOf(id)) {
    owner->OnPacketRepeated(id, payload_bytes);
    return;
  }
  observer_.OnPacketRepeated(ConnectionOf(id), payload_bytes);
}

void LaneExecutor::OnUnreliableSend(uint32_t id, bool at_receiver, uint32_t immediate) {
  OwnerOf(id)->OnUnreliableSend(id, at_receiver, immediate);
}

void LaneExecutor::OnRetransmission(uint32_t id) {
  if (TransportListener* const owner = OwnerOf(id)) {
    owner->OnRetransmission(id);
    return;
  }
  observer_.OnRetransmission(ConnectionOf(id));
}

void LaneExecutor::OnLossRecovered(uint32_t id) {
  if (TransportListener* const owner = OwnerOf(id)) {
    owner->OnLossRecovered(id);
    return;
  }
  observer_.OnLossRecovered(ConnectionOf(id));
}

void LaneExecutor::OnConnectionError(uint32_t id, bool at_sender, const std::string& why) {
  if (TransportListener* const owner = OwnerOf(id)) {
    owner->OnConnectionError(id, at_sender, why);
    return;
  }
  const uint32_t connection = ConnectionOf(id);
  if (slots_[connection].is_closed) return;
  const bool may_fail_over = nic_policy_ && why.starts_with(kRetryExceeded);
  if (may_fail_over && (!IsInUse(id) || TryToFailOver(connection))) return;
  observer_.OnConnectionError(connection, at_sender, why);
}

}  // namespace railyard
