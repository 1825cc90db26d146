// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/collnet_chain_schedule.h"

#include <utility>
#include <vector>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "workloads/collectives/head_table.h"

namespace railyard {

CollnetChainSchedule::CollnetChainSchedule(std::shared_ptr<const TreeTable> chains,
                                           CollnetChainParameters parameters)
    : ShapedSchedule(static_cast<uint32_t>(chains->front().size()),
                     static_cast<uint32_t>(chains->size()), parameters.message_rule),
      chains_(std::move(chains)),
      parameters_(parameters) {
  SIM_CHECK(!chains_->empty() && parameters_.chunk_bytes > 0,
            "a CollNetChain schedule without chains, or without a chunk size");
}

uint32_t CollnetChainSchedule::BatchCount(RankIndex /*rank*/, uint32_t channel) const {
  return StepCount({.rank = RankIndex{0}, .channel = channel}) != 0 ? 1 : 0;
}

uint32_t CollnetChainSchedule::LaneCount(RankIndex /*rank*/, uint32_t /*channel*/,
                                         uint32_t /*batch*/) const {
  return 2;
}

LanePeers CollnetChainSchedule::PeersOf(const LaneId& lane) const {
  const TreePlace& place = PlaceOf(lane);
  const auto one = [](int32_t rank) {
    std::vector<LanePeer> peers;
    if (rank != kNoPeer) peers.push_back({RankIndex{rank}, ConnectionUse::kTree});
    return peers;
  };
  std::vector<LanePeer> above = one(place.up);
  if (place.up == kNoPeer) {
    const std::vector<TreePlace>& chain = (*chains_)[lane.channel];
    for (uint32_t rank = 0; rank < chain.size(); ++rank) {
      if (chain[rank].up == kNoPeer) above.push_back({RankIndex{rank}, ConnectionUse::kNetworkSum});
    }
  }
  std::vector<LanePeer> below = one(place.down[0]);
  return lane.lane == 0 ? LanePeers{std::move(below), std::move(above)}
                        : LanePeers{std::move(above), std::move(below)};
}

uint64_t CollnetChainSchedule::StepCount(const LaneId& /*lane*/) const {
  const uint64_t loop_bytes = channel_count() * parameters_.chunk_bytes;
  return DivideUp(parameters_.bytes, loop_bytes);
}

Step CollnetChainSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const TreePlace& place = PlaceOf(lane);
  const ChunkLoops loops{.total_bytes = parameters_.bytes,
                         .chunk_bytes = parameters_.chunk_bytes,
                         .parts = channel_count(),
                         .grain_bytes = parameters_.grain_bytes};
  const SliceChunk chunk = loops.ChunkOf(step, lane.channel);
  const bool is_up = lane.lane == 0;
  const int32_t above = place.up == kNoPeer ? kAllPeers : place.up;
  Step result;
  result.offset_bytes = chunk.offset_bytes;
  result.bytes = chunk.bytes;
  result.recv_from = is_up ? place.down[0] : above;
  result.send_to = is_up ? above : place.down[0];
  result.load_local = is_up;
  result.reduce = is_up ? place.down[0] != kNoPeer : place.up == kNoPeer;
  result.store = !is_up;
  return result;
}

}  // namespace railyard
