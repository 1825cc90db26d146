// SPDX-License-Identifier: GPL-2.0-only
// Programs, their batches and lanes: how they begin, whose connections they have, and how they end.
#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

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
      paths_->StartChannel(id, table_.GpuOfRank(program.communicator, program.rank),
                           program.collective);
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
  observer_.OnChannelFinished(program.operation, end_ps, paths_ ? &paths_->OfChannel(id) : nullptr);
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
  const MessageRule& rule = program.schedule->MessageRuleOf(lane_program.id);
  SIM_CHECK(
      rule.slices_per_chunk <= kConnectionSlots && rule.in_flight_messages <= kConnectionSlots,
      "more messages under way than a connection has slots");
  Lane& lane = lanes_[id];
  lane = Lane{};
  lane.free_ps = channel.end_ps;
  const uint32_t gpu = table_.GpuOfRank(program.communicator, program.rank);
  // On like rails the same.
  const uint64_t local_number = table_.LocalNumberOf(program.communicator, program.rank);
  const auto local_index = static_cast<uint64_t>(graph_.device(graph_.gpus()[gpu]).local_index);
  lane.tie = table_.TieOf(gpu, local_number << 8 | channel.channel,
                          table_.IsOnRails(program.communicator) ? 0 : local_index + 1,
                          uint64_t{channel.batch} << 32 | lane_index);
  lane.slices_per_chunk = static_cast<uint8_t>(rule.slices_per_chunk);
  lane.in_flight_messages = static_cast<uint8_t>(rule.in_flight_messages);
  lane.costs = rule.line_payload_bytes == 1 ? program.costs : program.line_costs;
  const WarpShare warps = program.schedule->WarpShareOf(lane_program.id);
  lane.warp_parts = static_cast<uint8_t>(std::min<uint32_t>(warps.parts, UINT8_MAX));
  lane.warps_of = static_cast<uint8_t>(std::min<uint32_t>(warps.of, UINT8_MAX));
  lane.steps_at_once = static_cast<uint8_t>(
      std::min<uint32_t>(program.schedule->StepsAtOnce(lane_program.id), UINT8_MAX));
  lane.free_ps -= OverheadPs(lane);  // there is no slice before the first
  lane.in_use = true;
  if (paths_) [[unlikely]]
    paths_->StartLane(id, active_channel);
  const LanePeers peers = program.schedule->PeersOf(lane_program.id);
  if (peers.recv_from.size() > 1 || peers.send_to.size() > 1) TakePeers(id, peers);
  LoadSteps(id);
  Wake(id);
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
  MessageSlots& slots = table_.slots(connection);
  if (slots.*owner == id) return true;
  if (slots.*owner != kNone) {
    claimants_[connection].push_back(id);
    return false;
  }
  slots.*owner = id;
  Connection& claimed = table_.connection(connection);
  const Program& program = active_channels_[lane_programs_[id].channel].program;
  claimed.collective = program.collective;
  if (is_send) claimed.loss_tolerance_ppm = program.loss_tolerance_ppm;
  table_.StartOver(connection, is_send);
  return true;
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
    const uint32_t connection =
        table_.Between(program.communicator, lane_id.channel, peers.recv_from[i].rank, lane_id.rank,
                       peers.recv_from[i].use);
    if (table_.slots(connection).receiver == id) continue;
    if (!Claim(id, connection, false)) return false;
    if (table_.connection(connection).load_flow != kNone) lanes_[id].loads = true;
    if (several != kNone) lane_peers_[several].receive_connections[i] = connection;
    if (i == 0) lanes_[id].receive_connection = connection;
    if (table_.slots(connection).network) GrantMessages(id, connection);
  }
  for (size_t i = 0; i < peers.send_to.size(); ++i) {
    if (is_of_others(peers.send_to[i])) continue;
    const uint32_t connection = table_.Between(program.communicator, lane_id.channel, lane_id.rank,
                                               peers.send_to[i].rank, peers.send_to[i].use);
    if (!Claim(id, connection, true)) return false;
    if (several != kNone) lane_peers_[several].send_connections[i] = connection;
    if (i > 0) continue;
    const Connection& claimed = table_.connection(connection);
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
  SetAggregation(peers, program.id.rank, step);
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
  MessageSlots& slots = table_.slots(connection);
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
      paths_->OnGrant(connection, program.channel, lane.in_flight_messages);
    ++slots.progress.granted;
    const Connection& granted = table_.connection(connection);
    granted.transport->Grant(granted.flow, true);
  }
}

void LaneExecutor::FinishLane(uint32_t id) {
  Lane& lane = lanes_[id];
  const auto release = [this](uint32_t connection, uint32_t MessageSlots::*owner) {
    if (connection == kNone) return;
    table_.slots(connection).*owner = kNone;
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
    paths_->EndLane(id, channel_id);
  lane.in_use = false;
  lane_programs_[id].next_free = free_lane_;
  free_lane_ = id;
  if (--channel.lanes_left > 0) return;
  ++channel.batch;
  StartBatch(channel_id);
}

}  // namespace railyard
