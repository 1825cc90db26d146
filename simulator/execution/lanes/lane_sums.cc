// SPDX-License-Identifier: GPL-2.0-only
// Sums and copies that NVSwitches (NVLS) or the network's switches (SHARP) make for a lane.
#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/flow_sinks.h"

namespace railyard {

void LaneExecutor::RequestSum(Lane& lane, int64_t done_ps) {
  const std::vector<uint32_t>& operands = lane_peers_[lane.peers].operands;
  Connection& first = table_.connection(operands.front());
  if (first.flow == kNone) {
    std::vector<uint32_t> members;
    for (const uint32_t operand : operands) members.push_back(table_.connection(operand).from_gpu);
    first.flow =
        load_store_.OpenReduce({&sinks_->switch_sums, operands.front()}, first.to_gpu, members);
  }
  lane.awaits = 1;
  lane.free_ps = done_ps;  // sums are sent on as they come
  load_store_.PostReduce(first.flow, SizeOf(lane.costs, lane.slice_bytes).bytes);
}

void LaneExecutor::OnSwitchSum(uint32_t connection) {
  const uint32_t id = table_.slots(connection).receiver;
  Lane& lane = lanes_[id];
  lane.awaits = 0;
  const int64_t done_ps = std::max(engine_.NowPs(), lane.free_ps);
  if (paths_) [[unlikely]]
    paths_->OfLane(IdOf(lane)).ExtendTo(done_ps, PathCause::kTransit);
  RunSlice(lane, done_ps);
  NextSlice(id);
  Wake(id);
}

void LaneExecutor::SendBySwitch(const Lane& lane, const std::vector<uint32_t>& results,
                                int64_t done_ps) {
  if (table_.connection(results.front()).flow == kNone) {
    std::vector<LoadStoreTransport::GroupMember> members;
    for (const uint32_t result : results) {
      members.push_back(
          {.gpu = table_.connection(result).to_gpu, .sink = {&sinks_->stores, result}});
    }
    const uint32_t group =
        load_store_.OpenMulticast(table_.connection(results.front()).from_gpu, members);
    for (const uint32_t result : results) table_.connection(result).flow = group;
  }
  for (const uint32_t result : results) {
    MessageSlots& to = table_.slots(result);
    const uint32_t slot = to.posted++ % kConnectionSlots;
    to.sizes[slot] = MarkOf(lane.slice_bytes);
    to.time_ps[slot] = done_ps;
    to.costs = lane.costs;
    if (paths_) [[unlikely]]
      paths_->OnSent(IdOf(lane), result, slot);
    if (lane.slice_bytes == 0 && Ahead(to.posted, to.delivered) == 1) OnStoreArrival(result);
  }
  if (lane.slice_bytes == 0) return;
  load_store_.PostMulticast(table_.connection(results.front()).flow,
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

AggregatedBytes& LaneExecutor::AggregatedIn(const Lane& lane, uint32_t connection) {
  Aggregated& aggregated = table_.aggregated(table_.connection(connection));
  const bool gathers = lane_peers_[lane.peers].aggregation.kind == Aggregation::Kind::kGather;
  return gathers ? aggregated.gathered : aggregated.reduced;
}

uint32_t LaneExecutor::CountTaken(const Lane& lane, uint32_t connection) {
  if (!table_.connection(connection).is_network_sum) return lane.slice_bytes;
  const Peers& peers = lane_peers_[lane.peers];
  const bool scatters = peers.aggregation.kind == Aggregation::Kind::kScatter;
  const uint32_t bytes = scatters ? peers.own_bytes : lane.slice_bytes;
  AggregatedIn(lane, connection).received += bytes;
  return bytes;
}

// Its slot is free, so there is room for the sum as well: the receive is posted with the operand
// (src/transport/coll_net.cc).
void LaneExecutor::SendToTree(const Lane& lane, uint32_t id, int64_t done_ps) {
  Connection& connection = table_.connection(id);
  if (connection.flow == kNone) JoinTree(lane, connection, id);
  const uint32_t slot = Ahead(table_.slots(id).posted, 1) % kConnectionSlots;
  table_.staged(connection).bytes[slot] = lane.slice_bytes;
  Aggregation& aggregation = table_.aggregations(connection)[slot];
  aggregation = lane_peers_[lane.peers].aggregation;
  aggregation.bytes = SizeOf(lane.costs, lane.slice_bytes).bytes;
  const bool gathers = aggregation.kind == Aggregation::Kind::kGather;
  AggregatedIn(lane, id).sent += gathers ? lane_peers_[lane.peers].own_bytes : lane.slice_bytes;
  SchedulePost(done_ps + costs_[lane.costs].costs.LatencyBeforePostPs(), id, PostPhase::kStaged);
}

void LaneExecutor::JoinTree(const Lane& lane, Connection& connection, uint32_t id) {
  const LaneProgram& program = lane_programs_[static_cast<size_t>(&lane - lanes_.data())];
  std::vector<uint32_t> gpus;
  uint32_t place = 0;
  uint32_t first_rank = kNone;
  for (const LanePeer& peer : lane_peers_[lane.peers].listed.send_to) {
    if (peer.use != ConnectionUse::kNetworkSum) continue;
    if (peer.rank == program.id.rank) place = static_cast<uint32_t>(gpus.size());
    if (gpus.empty()) first_rank = peer.rank;
    gpus.push_back(table_.GpuOfRank(connection.communicator, peer.rank));
  }
  table_.JoinTree(id, program.id.channel, first_rank, gpus, place);
}

void LaneExecutor::OnNetworkSum(uint32_t id) {
  MessageSlots& slots = table_.slots(id);
  const int64_t seen_ps =
      ProxySeenPs(table_.connection(id).to_gpu) + costs_[slots.costs].costs.LatencyAfterArrivalPs();
  const uint32_t slot = slots.delivered++ % kConnectionSlots;
  if (paths_) [[unlikely]]
    paths_->OnSeen(id, slot, seen_ps);
  slots.time_ps[slot] = seen_ps;
  WakeReceiver(slots, seen_ps);
}

}  // namespace railyard
