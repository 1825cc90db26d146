// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nvls_schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

NvlsSchedule::NvlsSchedule(std::shared_ptr<const HeadTable> table, NvlsParameters parameters)
    : table_(std::move(table)),
      parameters_(std::move(parameters)),
      heads_(std::min(table_->heads(), kNvlsHeadsMax)) {
  SIM_CHECK(parameters_.chunk_bytes > 0 && table_->heads() >= 2,
            "an NVLS schedule without a chunk size, or of servers with one GPU");
  SIM_CHECK(heads_ == table_->heads() || parameters_.kind == CollectiveKind::kAllReduce,
            "a block of AllGather or ReduceScatter whose GPU is no head");
  SIM_CHECK(table_->servers.size() == 1 ? parameters_.shares.size() == parameters_.channel_count
                                        : parameters_.kind == CollectiveKind::kAllReduce,
            "NVLS over several servers is AllReduce, over one has a share for each channel");
}

uint32_t NvlsSchedule::BatchCount(RankIndex /*rank*/, uint32_t channel) const {
  return LoopCount(channel) != 0 ? 1 : 0;
}

std::span<const NvlsSchedule::Part> NvlsSchedule::PartsOf(RankIndex rank, uint32_t channel) const {
  static constexpr std::array kAllGather = {Part::kDown, Part::kGather};
  static constexpr std::array kReduceScatter = {Part::kScatter, Part::kUp};
  // The root's reduction goes straight down.
  static constexpr std::array kRoot = {Part::kScatter, Part::kUp, Part::kGather};
  static constexpr std::array kOther = {Part::kScatter, Part::kUp, Part::kDown, Part::kGather};
  static constexpr std::array kNoHead = {Part::kScatter, Part::kGather};
  if (table_->head_of[rank] >= heads_) return kNoHead;
  if (parameters_.kind == CollectiveKind::kAllGather) return kAllGather;
  if (parameters_.kind == CollectiveKind::kReduceScatter) return kReduceScatter;
  if (parameters_.network_sum) return kOther;
  if (table_->servers.size() == 1 || TreeOf(rank, channel).up == kNoPeer) return kRoot;
  return kOther;
}

uint32_t NvlsSchedule::LaneCount(RankIndex rank, uint32_t channel, uint32_t /*batch*/) const {
  return static_cast<uint32_t>(PartsOf(rank, channel).size());
}

// connectNvls (src/graph/connect.cc): even channels have the first tree over the servers, odd ones
// the second; the head of a slice meets the heads of the same slice.
TreePlace NvlsSchedule::TreeOf(RankIndex rank, uint32_t channel) const {
  const auto servers = static_cast<uint32_t>(table_->servers.size());
  if (servers == 1 || parameters_.network_sum) return {};
  TreePlace place = PlaceInDoubleTree(servers, table_->server_of[rank], channel % 2 == 1);
  const auto head_there = [&](int32_t& peer) {
    if (peer == kNoPeer) return;
    peer =
        static_cast<int32_t>(table_->servers[static_cast<uint32_t>(peer)][table_->head_of[rank]]);
  };
  head_there(place.up);
  for (int32_t& child : place.down) head_there(child);
  return place;
}

LanePeers NvlsSchedule::PeersOf(const LaneId& lane) const {
  std::vector<LanePeer> operands;
  std::vector<LanePeer> results;
  // A head has to do with all GPUs of its server, the others with its heads.
  const Part part = PartOf(lane);
  const auto& ranks = table_->servers[table_->server_of[lane.rank]];
  const bool of_head = part == Part::kUp || part == Part::kDown;
  for (size_t i = 0; i < (of_head ? ranks.size() : heads_); ++i) {
    operands.push_back({ranks[i], ConnectionUse::kSwitchOperand});
    results.push_back({ranks[i], ConnectionUse::kSwitchResult});
  }
  const TreePlace place = TreeOf(lane.rank, lane.channel);
  std::vector<LanePeer> children;
  for (const int32_t child : place.down) {
    if (child != kNoPeer) children.push_back({RankIndex{child}, ConnectionUse::kTree});
  }
  const auto joined = [](std::vector<LanePeer> a, const std::vector<LanePeer>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::vector<LanePeer> parent =
      place.up == kNoPeer ? std::vector<LanePeer>{}
                          : std::vector<LanePeer>{{RankIndex{place.up}, ConnectionUse::kTree}};
  const std::vector<LanePeer> sum =
      parameters_.network_sum ? table_->HeadsOfSlice(lane.rank, ConnectionUse::kNetworkSum)
                              : std::vector<LanePeer>{};
  switch (part) {
    case Part::kScatter:
      return {{}, operands};
    case Part::kUp:
      if (parameters_.network_sum) return {operands, sum};
      if (parameters_.kind == CollectiveKind::kReduceScatter) return {operands, {}};
      return {joined(operands, children), place.up == kNoPeer ? joined(results, children) : parent};
    case Part::kDown:
      if (parameters_.network_sum) return {sum, results};
      return {parent, joined(results, children)};
    case Part::kGather:
      break;
  }
  return {results, {}};
}

uint64_t NvlsSchedule::LoopCount(uint32_t channel) const {
  const uint64_t heads = heads_;
  if (parameters_.kind != CollectiveKind::kAllReduce) {
    return DivideUp(parameters_.shares[channel].bytes, parameters_.chunk_bytes);
  }
  if (table_->servers.size() == 1) {
    return DivideUp(parameters_.shares[channel].bytes, heads * parameters_.chunk_bytes);
  }
  const uint64_t loop_bytes = parameters_.channel_count * heads * parameters_.chunk_bytes;
  return DivideUp(parameters_.block_bytes, loop_bytes);
}

// Returns, for AllReduce, a head's part of a loop, where the last loop is shared evenly among the
// heads; for other collectives, a part of the head's block.
SliceChunk NvlsSchedule::ChunkOf(uint32_t channel, uint64_t loop, uint32_t head) const {
  const uint64_t heads = heads_;
  const uint64_t chunk_bytes = parameters_.chunk_bytes;
  if (table_->servers.size() > 1) {
    const ChunkLoops loops{.total_bytes = parameters_.block_bytes,
                           .chunk_bytes = chunk_bytes,
                           .parts = heads * parameters_.channel_count,
                           .grain_bytes = parameters_.grain_bytes};
    return loops.ChunkOf(loop, channel * heads + head);
  }
  const ChannelShare& share = parameters_.shares[channel];
  if (parameters_.kind == CollectiveKind::kAllReduce) {
    const ChunkLoops loops{.total_bytes = share.bytes,
                           .chunk_bytes = chunk_bytes,
                           .parts = heads,
                           .grain_bytes = parameters_.grain_bytes};
    SliceChunk chunk = loops.ChunkOf(loop, head);
    chunk.offset_bytes += share.offset_bytes;
    return chunk;
  }
  const RankIndex rank = table_->servers.front()[head];
  const uint64_t within_bytes = loop * chunk_bytes;
  return {rank * parameters_.block_bytes + share.offset_bytes + within_bytes,
          std::min(chunk_bytes, share.bytes - within_bytes)};
}

// The warps of each part are those of src/device/all_reduce.h, all_gather.h and reduce_scatter.h
// (nThreadsScatter, …). If three or more warps send, one of them does nothing but fence and post
// (nworkers, src/device/prims_simple.h; NCCL_SIMPLE_EXTRA_GROUP_IF_NTHREADS_GE).
WarpShare NvlsSchedule::WarpShareOf(const LaneId& lane) const {
  constexpr uint32_t kWarps = 20;  // NCCL_MAX_NTHREADS / WARP_SIZE
  const auto working = [](uint32_t warps, bool sends) {
    return WarpShare{.parts = sends && warps >= 3 ? warps - 1 : warps, .of = kWarpsOfRate};
  };
  const Part part = PartOf(lane);
  if (parameters_.kind != CollectiveKind::kAllReduce) {
    constexpr uint32_t kWarpsOfHeads = 8;
    const bool of_heads = part == Part::kScatter || part == Part::kGather;
    return working(of_heads ? kWarpsOfHeads : kWarps - kWarpsOfHeads,
                   part == Part::kScatter || part == Part::kDown);
  }
  const bool is_root = !parameters_.network_sum && TreeOf(lane.rank, lane.channel).up == kNoPeer;
  const uint32_t down = parameters_.network_sum ? 2 : is_root ? 0 : 4;
  const uint32_t up = parameters_.network_sum ? 3 : is_root && rank_count() <= 6 ? 7 : 5;
  const uint32_t others = kWarps - up - down;
  switch (part) {
    case Part::kScatter:
      return working((others + 1) / 2, true);
    case Part::kUp:
      return working(up, true);
    case Part::kDown:
      return working(down, true);
    case Part::kGather:
      break;
  }
  return working(others / 2, false);
}

bool NvlsSchedule::AreOneRound(const LaneId& lane) const { return StepsAtOnce(lane) > 1; }

uint32_t NvlsSchedule::StepsAtOnce(const LaneId& lane) const {
  const Part part = PartOf(lane);
  return part == Part::kScatter || part == Part::kGather ? heads_ : 1;
}

uint64_t NvlsSchedule::StepCount(const LaneId& lane) const {
  return LoopCount(lane.channel) * StepsAtOnce(lane);
}

// Scatter and gather serve one head a step; the other parts the own slice.
Step NvlsSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const uint64_t heads = heads_;
  const Part part = PartOf(lane);
  const bool by_head = part == Part::kScatter || part == Part::kGather;
  const auto head = by_head ? static_cast<uint32_t>(step % heads) : table_->head_of[lane.rank];
  const SliceChunk chunk = ChunkOf(lane.channel, by_head ? step / heads : step, head);
  const auto head_rank = static_cast<int32_t>(table_->servers[table_->server_of[lane.rank]][head]);
  const TreePlace place = TreeOf(lane.rank, lane.channel);
  Step result;
  result.offset_bytes = chunk.offset_bytes;
  result.bytes = chunk.bytes;
  switch (part) {
    case Part::kScatter:
      result.send_to = head_rank;
      result.load_local = true;
      break;
    case Part::kUp:
      result.recv_from = kAllPeers;
      result.reduce = true;
      if (parameters_.kind == CollectiveKind::kReduceScatter) {
        result.store = true;
      } else {
        result.send_to = kAllPeers;
      }
      break;
    case Part::kDown:
      result.load_local = place.up == kNoPeer && !parameters_.network_sum;  // AllGather: own block
      result.recv_from = result.load_local ? kNoPeer : kAllPeers;
      result.reduce = parameters_.network_sum;
      result.send_to = kAllPeers;
      break;
    case Part::kGather:
      result.recv_from = head_rank;
      result.store = true;
      break;
  }
  return result;
}

}  // namespace railyard
