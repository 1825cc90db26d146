// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/sums/network_sums.h"

#include <algorithm>
#include <vector>

namespace railyard {

AggregatedBytes& NetworkSums::CountersOf(const LaneConnections& peers, ConnectionId connection) {
  Aggregated& aggregated = table_.aggregated(table_.connection(connection));
  const bool gathers = peers.aggregation.operation.kind == Aggregation::Kind::kGather;
  return gathers ? aggregated.gathered : aggregated.reduced;
}

uint32_t NetworkSums::CountReceived(const LaneConnections& peers, ConnectionId connection,
                                    uint32_t slice_bytes) {
  const bool scatters = peers.aggregation.operation.kind == Aggregation::Kind::kScatter;
  const uint32_t bytes = scatters ? peers.aggregation.own_bytes : slice_bytes;
  CountersOf(peers, connection).received += bytes;
  return bytes;
}

void NetworkSums::Stage(const LaneId& lane, const LaneConnections& peers, ConnectionId id,
                        uint32_t slice_bytes, uint64_t wire_bytes) {
  const Connection& connection = table_.connection(id);
  if (connection.flow == FlowId::kNone) JoinTree(lane, peers.listed, id);
  const uint32_t slot = Ahead(table_.slots(id).posted, 1) % kConnectionSlots;
  table_.staged(connection).bytes[slot] = slice_bytes;
  Aggregation& operation = table_.aggregations(connection)[slot];
  operation = peers.aggregation.operation;
  operation.bytes = wire_bytes;
  const bool gathers = operation.kind == Aggregation::Kind::kGather;
  CountersOf(peers, id).sent += gathers ? peers.aggregation.own_bytes : slice_bytes;
}

void NetworkSums::JoinTree(const LaneId& lane, const LanePeers& listed, ConnectionId id) {
  const CommunicatorIndex communicator = table_.connection(id).communicator;
  std::vector<GpuIndex> gpus;
  uint32_t place = 0;
  RankIndex first_rank = RankIndex::kNone;
  for (const LanePeer& peer : listed.send_to) {
    if (peer.use != ConnectionUse::kNetworkSum) continue;
    if (peer.rank == lane.rank) place = static_cast<uint32_t>(gpus.size());
    if (gpus.empty()) first_rank = peer.rank;
    gpus.push_back(table_.GpuOfRank(communicator, peer.rank));
  }
  table_.JoinTree(id, lane.channel, first_rank, gpus, place);
}

void NetworkSums::Post(ConnectionId id, uint32_t slot) {
  const Connection& connection = table_.connection(id);
  transport_.Post(connection.flow, table_.aggregations(connection)[slot]);
}

}  // namespace railyard
