// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's CollNetChain AllReduce as a CollectiveSchedule (src/device/all_reduce.h): a
// chunk is reduced along a chain of each server's GPUs to the channel's head, then by the network's
// switches over all heads, and returns along the chains. Half of a CTA's warps work towards the
// head while the other half works away from it.
#pragma once

#include <cstdint>
#include <memory>

#include "workloads/collectives/shaped_schedule.h"
#include "workloads/nccl/tree_schedule.h"

namespace railyard {

struct CollnetChainParameters {
  uint64_t bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t grain_bytes = 16;
  MessageRule message_rule;
};

class CollnetChainSchedule final : public ShapedSchedule {
 public:
  // `chains` holds each server's chains by channel and rank; the heads have no parent.
  // Precondition: at least two servers.
  CollnetChainSchedule(std::shared_ptr<const TreeTable> chains, CollnetChainParameters parameters);

  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  // Lane 0 works up the chain, lane 1 down.
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  const TreePlace& PlaceOf(const LaneId& lane) const { return (*chains_)[lane.channel][lane.rank]; }

  std::shared_ptr<const TreeTable> chains_;
  CollnetChainParameters parameters_;
};

}  // namespace railyard
