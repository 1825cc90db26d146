// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/lane_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

uint8_t AtMost255(uint64_t count) {
  return static_cast<uint8_t>(std::min<uint64_t>(count, UINT8_MAX));
}

// Sets the share at which a slice's bytes take the given work. It is exact without other work than
// the bytes', and else the nearest fraction whose larger term is about 255.
void SetShare(const WarpShare& warps, uint32_t work_per_mille, CtaShare& share) {
  share.warp_parts = AtMost255(warps.parts);
  share.warps_of = AtMost255(warps.of);
  if (work_per_mille == 1000) return;
  const double time = static_cast<double>(warps.of) / warps.parts * work_per_mille / 1000;
  share.warp_parts = AtMost255(static_cast<uint64_t>(UINT8_MAX / std::max(1.0, time)));
  if (share.warp_parts == 0) share.warp_parts = 1;
  share.warps_of = AtMost255(static_cast<uint64_t>(std::llround(share.warp_parts * time)));
}

}  // namespace

// --- Channels ------------------------------------------------------------------------------------

ChannelIndex LaneTable::OpenChannel(const RankProgram& program, uint32_t channel, int64_t now_ps) {
  ChannelIndex id = free_channel_;
  if (id == ChannelIndex::kNone) {
    id = ChannelIndex{channels_.size()};
    channels_.emplace_back();
  } else {
    free_channel_ = channels_[id].next_free;
  }
  channels_[id] = {.program = program, .channel = channel, .end_ps = now_ps};
  return id;
}

uint32_t LaneTable::NextBatch(ChannelIndex id) {
  ActiveChannel& channel = channels_[id];
  const CollectiveSchedule& schedule = *channel.program.schedule;
  const RankIndex rank = channel.program.rank;
  const uint32_t batches = schedule.BatchCount(rank, channel.channel);
  // A batch may consist only of the rank's calls to itself, which have no lanes.
  uint32_t lanes = 0;
  while (channel.batch < batches &&
         (lanes = schedule.LaneCount(rank, channel.channel, channel.batch)) == 0) {
    ++channel.batch;
  }
  channel.lanes_left = lanes;
  return lanes;
}

void LaneTable::CloseChannel(ChannelIndex id) {
  channels_[id].next_free = free_channel_;
  free_channel_ = id;
}

// --- Lanes ---------------------------------------------------------------------------------------

LaneIndex LaneTable::NewLane() {
  const LaneIndex id = free_lane_;
  if (id != LaneIndex::kNone) {
    free_lane_ = positions_[id].next_free;
    return id;
  }
  lanes_.emplace_back();
  positions_.emplace_back();
  lanes_base_ = reinterpret_cast<const char*>(lanes_.data());
  return LaneIndex{lanes_.size() - 1};
}

LaneIndex LaneTable::OpenLane(ChannelIndex channel_id, uint32_t number) {
  const LaneIndex id = NewLane();
  ActiveChannel& channel = channels_[channel_id];
  const RankProgram& program = channel.program;
  const CollectiveSchedule& schedule = *program.schedule;
  LaneProgram& position = positions_[id];
  position = {.schedule = &schedule,
              .id = {program.rank, channel.channel, channel.batch, number},
              .channel = channel_id};
  position.step_count = schedule.StepCount(position.id);
  const MessageRule& rule = schedule.MessageRuleOf(position.id);
  SIM_CHECK(
      rule.slices_per_chunk <= kConnectionSlots && rule.in_flight_messages <= kConnectionSlots,
      "more messages under way than a connection has slots");
  Lane& lane = lanes_[id];
  lane = Lane{};
  lane.free_ps = channel.end_ps;
  const GpuIndex gpu = table_.GpuOfRank(program.communicator, program.rank);
  // The number is the same on corresponding rails.
  const uint64_t local_number = table_.LocalNumberOf(program.communicator, program.rank);
  lane.tie = table_.TieOf(
      gpu, local_number << 8 | channel.channel,
      table_.IsOnRails(program.communicator) ? 0 : uint64_t{table_.LocalIndexOf(gpu)} + 1,
      uint64_t{channel.batch} << 32 | number);
  lane.slices_per_chunk = static_cast<uint8_t>(rule.slices_per_chunk);
  lane.in_flight_messages = static_cast<uint8_t>(rule.in_flight_messages);
  const WarpShare warps = schedule.WarpShareOf(position.id);
  const uint32_t steps_at_once = schedule.StepsAtOnce(position.id);
  const bool has_rounds = schedule.AreOneRound(position.id);  // the first step has their overhead
  lane.cta = {.costs = rule.line_payload_bytes == 1 ? program.costs : program.line_costs,
              .steps_at_once = has_rounds ? uint8_t{1} : AtMost255(steps_at_once)};
  SetShare(warps, position.work_per_mille, lane.cta);
  if (warps.warps != 0) SetPart(id, channel.newest);
  channel.newest = id;
  // There is no slice before the first.
  lane.free_ps -= clock_.AtSpeedOfPs(gpu, clock_.OverheadPs(lane.cta));
  lane.in_use = true;
  const LanePeers peers = schedule.PeersOf(position.id);
  if (peers.recv_from.size() > 1 || peers.send_to.size() > 1) lane.peers = NewConnections(peers);
  if (has_rounds) {
    SIM_CHECK(lane.HasSeveralPeers() && rule.slices_per_chunk == 1,
              "rounds of steps with one peer, or of several slices");
    connections_[lane.peers].steps_of_round = steps_at_once;
  }
  LoadSteps(id);
  return id;
}

void LaneTable::SetPart(LaneIndex id, LaneIndex before) {
  LaneProgram& position = positions_[id];
  const CollectiveSchedule& schedule = *position.schedule;
  const WarpShare warps = schedule.WarpShareOf(position.id);
  const uint8_t costs = lanes_[id].cta.costs;
  position.part.rates = clock_.RatesOf(costs, warps, {});
  lanes_[id].is_part = position.part.rates.alone_bps != 0;
  if (!lanes_[id].is_part || !schedule.SharesWithLaneBefore(position.id)) return;
  if (!lanes_[before].is_part) return;  // it has another protocol
  LaneProgram& other = positions_[before];
  const WarpShare other_warps = schedule.WarpShareOf(other.id);
  position.part.rates = clock_.RatesOf(costs, warps, other_warps);
  position.part.other = before;
  other.part.rates = clock_.RatesOf(costs, other_warps, warps);
  other.part.other = id;
}

int64_t LaneTable::PartSlicePs(LaneIndex id, int64_t start_ps) const {
  const uint32_t bytes = lanes_[id].slice_bytes;
  if (bytes == 0) return 0;
  const CtaPart& part = positions_[id].part;
  const int64_t alone_ps = TransferTimePs(bytes, part.rates.alone_bps) + part.ahead_ps;
  const int64_t beside_ps = part.other_until_ps - start_ps;
  return CtaClock::PartPs(part.rates, alone_ps, clock_.AtOwnSpeedPs(GpuOf(id), beside_ps));
}

void LaneTable::BeginPartSlice(LaneIndex id, int64_t start_ps, int64_t done_ps) {
  CtaPart& part = positions_[id].part;
  if (lanes_[id].slice_bytes == 0) return;
  part.ahead_ps = 0;
  if (part.other == LaneIndex::kNone) return;
  CtaPart& other = positions_[part.other].part;
  other.other_until_ps = done_ps;
  const int64_t beside_ps = std::min(part.other_until_ps, done_ps) - start_ps;
  if (beside_ps <= 0) return;
  other.ahead_ps += CtaClock::AheadPs(other.rates, clock_.AtOwnSpeedPs(GpuOf(id), beside_ps));
}

LaneConnectionsIndex LaneTable::NewConnections(const LanePeers& listed) {
  LaneConnectionsIndex index = free_connections_;
  if (index == LaneConnectionsIndex::kNone) {
    index = LaneConnectionsIndex{connections_.size()};
    connections_.emplace_back();
  } else {
    free_connections_ = connections_[index].next_free;
  }
  LaneConnections& connections = connections_[index];
  connections.receive_connections.assign(listed.recv_from.size(), ConnectionId::kNone);
  connections.send_connections.assign(listed.send_to.size(), ConnectionId::kNone);
  connections.grants.assign(listed.recv_from.size(), {});
  connections.listed = listed;
  connections.steps_of_round = 1;
  connections.begins_round = true;
  connections.next_round_ps = 0;
  return index;
}

bool LaneTable::CloseLane(LaneIndex id) {
  Lane& lane = lanes_[id];
  if (lane.HasSeveralPeers()) {
    connections_[lane.peers].next_free = free_connections_;
    free_connections_ = lane.peers;
  }
  const LaneIndex other = positions_[id].part.other;
  if (other != LaneIndex::kNone) positions_[other].part.other = LaneIndex::kNone;
  ActiveChannel& channel = channels_[positions_[id].channel];
  channel.end_ps = std::max(channel.end_ps, lane.free_ps);
  lane.in_use = false;
  positions_[id].next_free = free_lane_;
  free_lane_ = id;
  return --channel.lanes_left == 0;
}

void LaneTable::EndPart(PartIndex part) {
  for (LaneIndex id; id < size(); ++id) {
    if (table_.executed(ProgramOf(id).communicator).part == part) lanes_[id].in_use = false;
  }
}

// --- Slices --------------------------------------------------------------------------------------

void LaneTable::LoadSteps(LaneIndex id) {
  Lane& lane = lanes_[id];
  LaneProgram& position = positions_[id];
  lane.steps_left = 0;
  if (position.next_step == position.step_count) return;
  const Step step = position.schedule->StepAt(position.id, position.next_step);
  SIM_CHECK(step.bytes <= UINT32_MAX, "a chunk of 4 GiB or more");
  const uint64_t alike =
      std::min<uint64_t>({position.schedule->AlikeFrom(position.id, position.next_step),
                          position.step_count - position.next_step, UINT32_MAX});
  position.next_step += alike;
  lane.steps_left = static_cast<uint32_t>(alike);
  lane.step_bytes = static_cast<uint32_t>(step.bytes);
  lane.first_bytes = static_cast<uint32_t>(
      SliceOf(position.schedule->MessageRuleOf(position.id), step.bytes, 0).bytes);
  lane.receives = step.recv_from != kNoPeer;
  lane.sends = step.send_to != kNoPeer;
  if (step.work_per_mille != position.work_per_mille) [[unlikely]] {
    position.work_per_mille = step.work_per_mille;
    SetShare(position.schedule->WarpShareOf(position.id), step.work_per_mille, lane.cta);
  }
  if (lane.HasSeveralPeers() && lane.has_claimed) SetStepConnections(id);
  BeginStep(lane);
}

void LaneTable::SetStepConnections(LaneIndex id) {
  const LaneProgram& position = positions_[id];
  const Step step =
      position.schedule->StepAt(position.id, position.next_step - lanes_[id].steps_left);
  LaneConnections& connections = connections_[lanes_[id].peers];
  const LanePeers& listed = connections.listed;
  const auto select = [](int32_t named, const std::vector<LanePeer>& ranks,
                         const std::vector<ConnectionId>& all, ConnectionUse by_switch,
                         std::vector<ConnectionId>& used,
                         std::vector<ConnectionId>& used_by_switch) {
    used.clear();
    used_by_switch.clear();
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (named != kAllPeers && named != static_cast<int32_t>(ranks[i].rank)) continue;
      if (all[i] == ConnectionId::kNone) continue;
      used.push_back(all[i]);
      if (ranks[i].use == by_switch) used_by_switch.push_back(all[i]);
    }
  };
  // Only receiving operands and sending results use the switch's groups. Leaving an operand for the
  // switch and taking a result from it are ordinary messages.
  select(step.recv_from, listed.recv_from, connections.receive_connections,
         ConnectionUse::kSwitchOperand, connections.receives, connections.operands);
  select(step.send_to, listed.send_to, connections.send_connections, ConnectionUse::kSwitchResult,
         connections.sends, connections.results);
  connections.aggregation = StepAggregationOf(listed, position.id.rank, step);
  SetRound(position, lanes_[id].cta, position.next_step - lanes_[id].steps_left, connections);
}

void LaneTable::SetRound(const LaneProgram& position, const CtaShare& share, uint64_t step,
                         LaneConnections& connections) {
  connections.begins_round = step % connections.steps_of_round == 0;
  if (connections.steps_of_round == 1 || !connections.begins_round) return;
  uint64_t bytes = 0;
  connections.round_ps = 0;
  for (uint64_t i = step; i < step + connections.steps_of_round; ++i) {
    const uint64_t step_bytes = position.schedule->StepAt(position.id, i).bytes;
    bytes += step_bytes;
    connections.round_ps += clock_.SlicePs(share, static_cast<uint32_t>(step_bytes));
  }
  SIM_CHECK(bytes <= UINT32_MAX, "a round of 4 GiB or more");
  connections.round_bytes = static_cast<uint32_t>(bytes);
}

// --- Grants --------------------------------------------------------------------------------------

LaneTable::GrantedSide LaneTable::GrantedSideOf(LaneIndex id, ConnectionId connection) {
  const Lane& lane = lanes_[id];
  if (!lane.HasSeveralPeers()) return {.cursor = &positions_[id].grants};
  LaneConnections& connections = connections_[lane.peers];
  const auto found = std::ranges::find(connections.receive_connections, connection);
  const auto index = static_cast<size_t>(found - connections.receive_connections.begin());
  return {.cursor = &connections.grants[index],
          .sender = static_cast<int32_t>(connections.listed.recv_from[index].rank)};
}

bool LaneTable::TakeMessage(const LaneProgram& position, const GrantedSide& side,
                            uint8_t slices_per_chunk) {
  GrantCursor& cursor = *side.cursor;
  while (cursor.left == 0) {
    if (cursor.step == position.step_count) return false;
    const uint64_t alike = position.schedule->AlikeFrom(position.id, cursor.step);
    const int32_t named = position.schedule->StepAt(position.id, cursor.step).recv_from;
    if (named != kNoPeer &&
        (named == kAllPeers || side.sender == kAllPeers || named == side.sender)) {
      cursor.left = alike * slices_per_chunk;
    }
    cursor.step += alike;
  }
  --cursor.left;
  return true;
}

}  // namespace railyard
