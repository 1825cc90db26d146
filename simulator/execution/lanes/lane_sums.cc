// SPDX-License-Identifier: GPL-2.0-only
// Sums and copies that NVSwitches (NVLS) or the network's switches (SHARP) make for a lane.
#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/flow_sinks.h"

namespace railyard {

void LaneExecutor::RequestSum(Lane& lane, int64_t done_ps) {
  const std::vector<uint32_t>& operands = lane_peers_[lane.peers].operands;
  Connection& first = connections_[operands.front()];
  if (first.flow == kNone) {
    std::vector<uint32_t> members;
    for (const uint32_t operand : operands) members.push_back(connections_[operand].from_gpu);
    first.flow =
        load_store_.OpenReduce({&sinks_->switch_sums, operands.front()}, first.to_gpu, members);
  }
  lane.awaits = 1;
  lane.free_ps = done_ps;  // sums are sent on as they come
  load_store_.PostReduce(first.flow, SizeOf(lane.costs, lane.slice_bytes).bytes);
}

void LaneExecutor::OnSwitchSum(uint32_t connection) {
  const uint32_t id = slots_[connection].receiver;
  Lane& lane = lanes_[id];
  lane.awaits = 0;
  const int64_t done_ps = std::max(engine_.NowPs(), lane.free_ps);
  if (paths_) [[unlikely]]
    PathOfLane(lane).ExtendTo(done_ps, PathCause::kTransit);
  RunSlice(lane, done_ps);
  NextSlice(id);
  Wake(id);
}

void LaneExecutor::SendBySwitch(const Lane& lane, const std::vector<uint32_t>& results,
                                int64_t done_ps) {
  if (connections_[results.front()].flow == kNone) {
    std::vector<LoadStoreTransport::GroupMember> members;
    for (const uint32_t result : results) {
      members.push_back({.gpu = connections_[result].to_gpu, .sink = {&sinks_->stores, result}});
    }
    const uint32_t group =
        load_store_.OpenMulticast(connections_[results.front()].from_gpu, members);
    for (const uint32_t result : results) connections_[result].flow = group;
  }
  for (const uint32_t result : results) {
    MessageSlots& to = slots_[result];
    const uint32_t slot = to.posted++ % kConnectionSlots;
    to.sizes[slot] = MarkOf(lane.slice_bytes);
    to.time_ps[slot] = done_ps;
    to.costs = lane.costs;
    if (paths_) [[unlikely]]
      TraceSend(lane, result, slot);
    if (lane.slice_bytes == 0 && Ahead(to.posted, to.delivered) == 1) OnStoreArrival(result);
  }
  if (lane.slice_bytes == 0) return;
  load_store_.PostMulticast(connections_[results.front()].flow,
                            SizeOf(lane.costs, lane.slice_bytes).bytes);
}

void LaneExecutor::SetAggregation(Peers& peers, uint32_t rank, const Step& step) {
  peers.aggregation = {};
  if (!step.gathers && !step.scatters) return;
  // One of the two is to or from the network.
  const bool sends = !peers.listed.send_to.empty() &&
                     peers.listed.send_to.front().use == ConnectionUse::kNetworkSum;
  const std::vector<LanePeer>& members = sends ? peers.listed.send_to : peers.listed.recv_from;
  const auto owner = std::ranges::find(members, static_cast<uint32_t>(step.owner), &LanePeer::rank);
  peers.aggregation = {
      .kind = step.gathers ? Aggregation::Kind::kGather : Aggregation::Kind::kScatter,
      .blocks = step.pieces,
      .owner = static_cast<uint32_t>(owner - members.begin())};
  peers.own_bytes = static_cast<uint32_t>(OwnedPieceOf(step, members, rank).bytes);
}

LaneExecutor::AggregatedBytes& LaneExecutor::AggregatedIn(const Lane& lane, uint32_t connection) {
  Aggregated& aggregated = aggregated_[connections_[connection].aggregations];
  const bool gathers = lane_peers_[lane.peers].aggregation.kind == Aggregation::Kind::kGather;
  return gathers ? aggregated.gathered : aggregated.reduced;
}

uint32_t LaneExecutor::CountTaken(const Lane& lane, uint32_t connection) {
  if (!connections_[connection].is_network_sum) return lane.slice_bytes;
  const Peers& peers = lane_peers_[lane.peers];
  const bool scatters = peers.aggregation.kind == Aggregation::Kind::kScatter;
  const uint32_t bytes = scatters ? peers.own_bytes : lane.slice_bytes;
  AggregatedIn(lane, connection).received += bytes;
  return bytes;
}

// Its slot is free, so there is room for the sum as well: the receive is posted with the operand
// (src/transport/coll_net.cc).
void LaneExecutor::SendToTree(const Lane& lane, uint32_t id, int64_t done_ps) {
  Connection& connection = connections_[id];
  if (connection.flow == kNone) JoinTree(lane, connection, id);
  const uint32_t slot = Ahead(slots_[id].posted, 1) % kConnectionSlots;
  staged_[connection.staged].bytes[slot] = lane.slice_bytes;
  Aggregation& aggregation = aggregations_[connection.aggregations][slot];
  aggregation = lane_peers_[lane.peers].aggregation;
  aggregation.bytes = SizeOf(lane.costs, lane.slice_bytes).bytes;
  const bool gathers = aggregation.kind == Aggregation::Kind::kGather;
  AggregatedIn(lane, id).sent += gathers ? lane_peers_[lane.peers].own_bytes : lane.slice_bytes;
  SchedulePost(done_ps + costs_[lane.costs].costs.LatencyBeforePostPs(), id, PostPhase::kStaged);
}

void LaneExecutor::JoinTree(const Lane& lane, Connection& connection, uint32_t id) {
  const LaneProgram& program = lane_programs_[static_cast<size_t>(&lane - lanes_.data())];
  Communicator& communicator =
      communicators_[active_channels_[program.channel].program.communicator];
  std::vector<uint32_t> gpus;
  uint32_t place = 0;
  uint32_t first_rank = kNone;
  for (const LanePeer& peer : lane_peers_[lane.peers].listed.send_to) {
    if (peer.use != ConnectionUse::kNetworkSum) continue;
    if (peer.rank == program.id.rank) place = static_cast<uint32_t>(gpus.size());
    if (gpus.empty()) first_rank = peer.rank;
    gpus.push_back(communicator.executed.gpus[peer.rank]);
  }
  const uint64_t key = uint64_t{program.id.channel} << 32 | first_rank;
  const auto [at, is_new] = communicator.trees.try_emplace(key, 0);
  // One route for all members: what the fabric's hashes see is of the first.
  const uint64_t entropy = HashOf(program.id.channel, gpus.front(), gpus.size());
  if (is_new) at->second = aggregation_.OpenTree(gpus, entropy);
  connection.flow = at->second + place;
  aggregation_.Join(connection.flow, {&sinks_->network_sums, id});
}

void LaneExecutor::OnNetworkSum(uint32_t id) {
  MessageSlots& slots = slots_[id];
  const int64_t seen_ps =
      ProxySeenPs(connections_[id].to_gpu) + costs_[slots.costs].costs.LatencyAfterArrivalPs();
  const uint32_t slot = slots.delivered++ % kConnectionSlots;
  if (paths_) [[unlikely]] {
    LanePaths::OfConnection& paths = PathsOf(id);
    paths.arrived[slot] = paths.sent[slot];
    paths.arrived[slot].ExtendTo(seen_ps, PathCause::kTransit);
  }
  slots.time_ps[slot] = seen_ps;
  WakeReceiver(slots, seen_ps);
}

}  // namespace railyard
