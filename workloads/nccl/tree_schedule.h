// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's tree AllReduce as a CollectiveSchedule: chunks go up the channel's tree, are
// reduced on the way, and go down again from the root (src/device/all_reduce.h, runTreeSplit). Half
// of a CTA's warps work upwards while the other half works downwards; the root's warps do both at
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/nccl_trees.h"

namespace railyard {

// Holds trees[channel][rank], as BuildTrees returns them; all schedules of a communicator share it.
using TreeTable = std::vector<std::vector<TreePlace>>;

struct TreeParameters {
  std::vector<ChannelShare> shares;   // by channel
  std::vector<uint64_t> chunk_bytes;  // by channel
  MessageRule message_rule;
};

class TreeSchedule final : public CollectiveSchedule {
 public:
  // Preconditions: there are at least two ranks; `parameters` has a share and a chunk size per
  // channel of the table.
  TreeSchedule(std::shared_ptr<const TreeTable> trees, TreeParameters parameters);

  uint32_t rank_count() const override { return static_cast<uint32_t>(trees_->front().size()); }
  uint32_t channel_count() const override { return static_cast<uint32_t>(trees_->size()); }
  const MessageRule& message_rule() const override { return parameters_.message_rule; }
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  // Lane 0 works up the tree, lane 1 down; the root's only lane does both.
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;
  uint64_t AlikeFrom(const LaneId& lane, uint64_t step) const override;

 private:
  const TreePlace& PlaceOf(const LaneId& lane) const { return (*trees_)[lane.channel][lane.rank]; }

  std::shared_ptr<const TreeTable> trees_;
  TreeParameters parameters_;
};

}  // namespace railyard
