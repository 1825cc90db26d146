// SPDX-License-Identifier: GPL-2.0-only
// Makes a CollectiveSchedule for any number of bytes from an algorithm that is written out step by
// step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "traces/trace/collective_blocks.h"
#include "traces/trace/trace.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// These are limits of an algorithm that is read from a file. The last is NCCL's MAXCHANNELS
// (src/include/device.h).
inline constexpr uint32_t kAlgorithmRanksMax = 1'024;
inline constexpr uint32_t kAlgorithmChunksMax = 65'536;
inline constexpr uint32_t kAlgorithmChannelsMax = 64;

// Describes a step that names its chunk by number; the chunk's size follows from the collective's.
struct ExplicitStep {
  uint32_t chunk = 0;
  // Number of adjacent chunks of the block, from `chunk` on, on which the step works; more than one
  // only if it neither sends nor receives.
  uint32_t chunks = 1;
  Step step = {};
  uint32_t source = 0;  // what its file's reader calls the place that it is from; 0: nothing
};

struct ExplicitAlgorithm {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t rank_count = 0;
  RankIndex root{0};
  uint32_t chunk_count = 1;  // of the vector, or of each block
  uint32_t channel_count = 1;
  Protocol protocol = Protocol::kSimple;
  bool is_in_place = false;     // AllToAll: a rank's block for itself is where it is to be
  bool lanes_are_ctas = false;  // each has all warps of a CTA; else those of a channel share one's
  // Lanes by rank and channel; each lane is a list of steps.
  std::map<std::pair<RankIndex, uint32_t>, std::vector<std::vector<ExplicitStep>>> lanes;

  // Returns the number of blocks that chunks are numbered in. Block r x rank_count + s of an
  // AllToAll is what rank s sends to rank r.
  uint64_t BlockCount() const {
    const uint64_t ranks = IsMadeOfBlocks(kind) ? rank_count : 1;
    return kind == CollectiveKind::kAllToAll ? ranks * ranks : ranks;
  }
};

class ExplicitSchedule final : public CollectiveSchedule {
 public:
  // Chunks larger than `slot_bytes` are processed in passes of that many bytes.
  ExplicitSchedule(std::shared_ptr<const ExplicitAlgorithm> algorithm, uint64_t block_bytes,
                   uint64_t slot_bytes, MessageRule message_rule);

  uint32_t rank_count() const override { return algorithm_->rank_count; }
  uint32_t channel_count() const override { return algorithm_->channel_count; }
  const MessageRule& message_rule() const override { return message_rule_; }
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  WarpShare WarpShareOf(const LaneId& lane) const override {
    return algorithm_->lanes_are_ctas ? WarpShare() : CollectiveSchedule::WarpShareOf(lane);
  }
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  const std::vector<ExplicitStep>& StepsOf(const LaneId& lane) const {
    return algorithm_->lanes.at({lane.rank, lane.channel})[lane.lane];
  }

  std::shared_ptr<const ExplicitAlgorithm> algorithm_;
  uint64_t block_bytes_;
  uint64_t chunk_bytes_;
  uint64_t slot_bytes_;
  uint64_t passes_;
  MessageRule message_rule_;
};

}  // namespace railyard
