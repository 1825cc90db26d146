// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's NVLS and NVLSTree as a CollectiveSchedule (src/device/all_reduce.h,
// all_gather.h, reduce_scatter.h): NVSwitches reduce and multicast, and every GPU of a server, up
// to 32 of them, is the head of one slice of the data. Warps of one CTA scatter (leave the GPU's
// data where the switch finds it), reduce (have the switch add up the GPU's own slice), and gather
// (receive all slices' results). Over several servers the heads of a slice form a tree (NVLSTree),
// or the network's switches add up the servers' data (NVLS with CollNet).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/head_table.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/nccl_trees.h"

namespace railyard {

// The largest number of heads of a server, NCCL_MAX_NVLS_ARITY (src/include/device.h).
inline constexpr uint32_t kNvlsHeadsMax = 32;

// The number of warps of the CTA whose rate NCCL states (kLocalCtaGbPerS in
// workloads/nccl/gpu_costs.cc). A lane's warps are counted as shares of this number.
inline constexpr uint32_t kWarpsOfRate = 16;

struct NvlsParameters {
  CollectiveKind kind = CollectiveKind::kAllReduce;  // or AllGather, ReduceScatter (one server)
  uint64_t block_bytes = 0;                          // whole vector, or one rank's block
  uint64_t chunk_bytes = 0;                          // of one head
  uint32_t channel_count = 0;
  bool network_sum = false;  // with several servers: CollNet instead of trees
  // With one server, the shares by channel. With several it is empty, and channels take turns at
  // loops of channel_count x heads chunks.
  std::vector<ChannelShare> shares;
  uint64_t grain_bytes = 16;
  MessageRule message_rule;
};

class NvlsSchedule final : public CollectiveSchedule {
 public:
  NvlsSchedule(std::shared_ptr<const HeadTable> table, NvlsParameters parameters);

  uint32_t rank_count() const override { return static_cast<uint32_t>(table_->head_of.size()); }
  uint32_t channel_count() const override { return parameters_.channel_count; }
  const MessageRule& message_rule() const override { return parameters_.message_rule; }
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  // Each part is as fast as its warps. Data to or from all heads is one round (ScatterGatherOp,
  // src/device/prims_simple.h; ADR 0168).
  WarpShare WarpShareOf(const LaneId& lane) const override;
  uint32_t StepsAtOnce(const LaneId& lane) const override;
  bool AreOneRound(const LaneId& lane) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  // Names the role of a lane. A rank numbers its lanes in this order and has no lane for a role
  // that it does not need.
  enum class Part : uint8_t { kScatter, kUp, kDown, kGather };
  std::span<const Part> PartsOf(RankIndex rank, uint32_t channel) const;
  Part PartOf(const LaneId& lane) const { return PartsOf(lane.rank, lane.channel)[lane.lane]; }
  TreePlace TreeOf(RankIndex rank, uint32_t channel) const;  // among servers
  uint64_t LoopCount(uint32_t channel) const;
  SliceChunk ChunkOf(uint32_t channel, uint64_t loop, uint32_t head) const;

  std::shared_ptr<const HeadTable> table_;
  NvlsParameters parameters_;
  uint32_t heads_;  // of a server
};

}  // namespace railyard
