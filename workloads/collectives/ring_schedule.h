// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's ring algorithms as a CollectiveSchedule: AllReduce, AllGather, ReduceScatter,
// Broadcast and Reduce, with the steps of src/device/{all_reduce,all_gather,
// reduce_scatter,broadcast,reduce}.h, once per channel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// Holds the rings of a communicator, flat, with their inverse; all its schedules share it.
class RingTable {
 public:
  explicit RingTable(const std::vector<std::vector<uint32_t>>& rings);

  uint32_t rank_count() const { return rank_count_; }
  uint32_t channel_count() const { return channel_count_; }
  RankIndex RankAt(uint32_t channel, uint32_t position) const {
    return rank_at_[channel * rank_count_ + position];
  }
  uint32_t PositionOf(uint32_t channel, RankIndex rank) const {
    return position_of_[channel * rank_count_ + rank];
  }

 private:
  uint32_t rank_count_ = 0;
  uint32_t channel_count_ = 0;
  std::vector<RankIndex> rank_at_;
  std::vector<uint32_t> position_of_;
};

struct RingParameters {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint64_t block_bytes = 0;  // whole vector, or one rank's block (AllGather, ReduceScatter)
  RankIndex root{0};
  uint64_t chunk_bytes = 0;          // largest chunk
  std::vector<ChannelShare> shares;  // by channel
  MessageRule message_rule;
};

class RingSchedule final : public CollectiveSchedule {
 public:
  // Preconditions: the kind is one of the five; there are at least two ranks, and a share per
  // channel of the table.
  RingSchedule(std::shared_ptr<const RingTable> rings, const RingParameters& parameters);

  uint32_t rank_count() const override { return rings_->rank_count(); }
  uint32_t channel_count() const override { return rings_->channel_count(); }
  const MessageRule& message_rule() const override { return message_rule_; }
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;
  uint64_t AlikeFrom(const LaneId& lane, uint64_t step) const override;

 private:
  struct Channel {
    uint64_t offset_bytes = 0;
    uint64_t bytes = 0;
    uint64_t step_count = 0;
    uint64_t last_loop = 0;              // AllReduce only: the loop with smaller chunks
    uint64_t last_loop_chunk_bytes = 0;  // AllReduce only
  };
  Step AllReduceStep(const Channel& channel, uint32_t position, uint64_t step) const;
  uint64_t AllReduceAlikeFrom(const Channel& channel, uint32_t position, uint64_t step) const;
  Step AllGatherStep(const Channel& channel, const LaneId& lane, uint32_t position,
                     uint64_t step) const;
  Step ReduceScatterStep(const Channel& channel, const LaneId& lane, uint32_t position,
                         uint64_t step) const;
  Step ChainStep(const Channel& channel, const LaneId& lane, uint32_t position,
                 uint64_t step) const;

  std::shared_ptr<const RingTable> rings_;
  CollectiveKind kind_;
  uint64_t block_bytes_;
  RankIndex root_;
  uint64_t chunk_bytes_;
  uint64_t steps_per_loop_;
  MessageRule message_rule_;
  std::vector<Channel> channels_;
};

}  // namespace railyard
