// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/collnet_direct_schedule.h"

#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

CollnetDirectSchedule::CollnetDirectSchedule(std::shared_ptr<const HeadTable> table,
                                             CollnetDirectParameters parameters)
    : ShapedSchedule(static_cast<uint32_t>(table->head_of.size()), parameters.channel_count,
                     parameters.message_rule),
      table_(std::move(table)),
      parameters_(parameters) {
  SIM_CHECK(table_->servers.size() >= 2 && parameters_.chunk_bytes > 0,
            "a CollNetDirect schedule of one server, or without a chunk size");
}

uint64_t CollnetDirectSchedule::LoopCount() const {
  const uint64_t loop_bytes =
      uint64_t{parameters_.channel_count} * table_->heads() * parameters_.chunk_bytes;
  return DivideUp(parameters_.bytes, loop_bytes);
}

uint32_t CollnetDirectSchedule::BatchCount(RankIndex /*rank*/, uint32_t /*channel*/) const {
  return LoopCount() != 0 ? 1 : 0;
}

uint32_t CollnetDirectSchedule::LaneCount(RankIndex /*rank*/, uint32_t /*channel*/,
                                          uint32_t /*batch*/) const {
  return table_->heads() == 1 ? 2 : 4;
}

// Between two GPUs, data that goes up and data that comes down use different connections (connIndex
// 0 and 1).
LanePeers CollnetDirectSchedule::PeersOf(const LaneId& lane) const {
  const auto others = [&](ConnectionUse use) {
    std::vector<LanePeer> peers;
    for (const RankIndex rank : table_->servers[table_->server_of[lane.rank]]) {
      if (rank != lane.rank) peers.push_back({rank, use});
    }
    return peers;
  };
  const std::vector<LanePeer> sum = table_->HeadsOfSlice(lane.rank, ConnectionUse::kNetworkSum);
  switch (static_cast<Part>(lane.lane)) {
    case Part::kReduce:
      return {others(ConnectionUse::kTree), sum};
    case Part::kBroadcast:
      return {sum, others(ConnectionUse::kExchange)};
    case Part::kScatter:
      return {{}, others(ConnectionUse::kTree)};
    case Part::kGather:
      break;
  }
  return {others(ConnectionUse::kExchange), {}};
}

uint64_t CollnetDirectSchedule::StepCount(const LaneId& lane) const {
  return LoopCount() * (ServesOthers(lane) ? table_->heads() - 1 : 1);
}

// GPUs begin with different heads: with the one behind their own (collnetDirect.shift).
uint32_t CollnetDirectSchedule::HeadOf(const LaneId& lane, uint64_t step) const {
  const uint32_t own = table_->head_of[lane.rank];
  if (!ServesOthers(lane)) return own;
  const uint32_t heads = table_->heads();
  return (own + 1 + static_cast<uint32_t>(step % (heads - 1))) % heads;
}

Step CollnetDirectSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const uint32_t heads = table_->heads();
  const uint32_t head = HeadOf(lane, step);
  const uint64_t loop = ServesOthers(lane) ? step / (heads - 1) : step;
  const ChunkLoops loops{.total_bytes = parameters_.bytes,
                         .chunk_bytes = parameters_.chunk_bytes,
                         .parts = uint64_t{parameters_.channel_count} * heads,
                         .grain_bytes = parameters_.grain_bytes};
  const SliceChunk chunk = loops.ChunkOf(loop, uint64_t{lane.channel} * heads + head);
  const auto head_rank = static_cast<int32_t>(table_->servers[table_->server_of[lane.rank]][head]);
  const int32_t others = heads == 1 ? kNoPeer : kAllPeers;
  const auto part = static_cast<Part>(lane.lane);
  Step result;
  result.offset_bytes = chunk.offset_bytes;
  result.bytes = chunk.bytes;
  result.load_local = part == Part::kReduce || part == Part::kScatter;
  result.store = !result.load_local;
  if (part == Part::kReduce) {
    result.recv_from = others;
    result.send_to = kAllPeers;
    result.reduce = heads > 1;
  } else if (part == Part::kBroadcast) {
    result.recv_from = kAllPeers;
    result.send_to = others;
    result.reduce = true;
  } else {
    (part == Part::kScatter ? result.send_to : result.recv_from) = head_rank;
  }
  return result;
}

}  // namespace railyard
