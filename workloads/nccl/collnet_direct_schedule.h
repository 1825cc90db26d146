// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's CollNetDirect AllReduce as a CollectiveSchedule (src/device/all_reduce.h): every
// GPU of a server is the head of one slice. Warps of one CTA send the other heads their slices over
// NVLink (scatter), add up the server's data of the head's slice and send it to the network, whose
// switches add up the data of all servers (reduce), forward the sum to the server's GPUs
// (broadcast), and receive the other slices' sums (gather).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/collectives/head_table.h"
#include "workloads/collectives/shaped_schedule.h"

namespace railyard {

struct CollnetDirectParameters {
  uint64_t bytes = 0;
  uint64_t chunk_bytes = 0;  // of one head
  uint32_t channel_count = 0;
  uint64_t grain_bytes = 16;
  MessageRule message_rule;
};

class CollnetDirectSchedule final : public ShapedSchedule {
 public:
  // Precondition: there are at least two servers.
  CollnetDirectSchedule(std::shared_ptr<const HeadTable> table, CollnetDirectParameters parameters);

  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  // Names the role of a lane, in the order of lane numbers. The only GPU of a server has no lanes
  // kScatter and kGather.
  enum class Part : uint8_t { kReduce, kBroadcast, kScatter, kGather };
  // Returns the head whose slice a step of a lane handles.
  uint32_t HeadOf(const LaneId& lane, uint64_t step) const;
  bool ServesOthers(const LaneId& lane) const {
    return static_cast<Part>(lane.lane) >= Part::kScatter;
  }
  uint64_t LoopCount() const;

  std::shared_ptr<const HeadTable> table_;
  CollnetDirectParameters parameters_;
};

}  // namespace railyard
