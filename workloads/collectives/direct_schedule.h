// SPDX-License-Identifier: GPL-2.0-only
// Direct exchange as a CollectiveSchedule, a baseline of research: every rank sends to every other
// the data with which that one ends (ReduceScatter) or the data with which it begins itself
// (AllGather). AllReduce runs the former and then the latter over as many parts as there are ranks
// (Chan et al.: "Collective communication: theory, practice, and experience", 2007; "direct" in
// ASTRA-sim). NCCL has no such algorithm.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/exchange_order.h"
#include "workloads/collectives/schedule.h"
#include "workloads/collectives/shaped_schedule.h"

namespace railyard {

struct DirectParameters {
  CollectiveKind kind = CollectiveKind::kAllReduce;  // or AllGather, ReduceScatter
  uint32_t rank_count = 0;
  uint64_t block_bytes = 0;          // whole vector, or one rank's block
  std::vector<ChannelShare> shares;  // by channel, of the vector or of each block
  uint64_t chunk_bytes = 0;
  MessageRule message_rule;
};

class DirectSchedule final : public ExchangeSchedule {
 public:
  // Precondition: at least two ranks.
  explicit DirectSchedule(DirectParameters parameters);

  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  bool Is(CollectiveKind kind) const { return parameters_.kind == kind; }
  // Returns the bytes of one rank's part of the channel's data.
  uint64_t PartBytes(uint32_t channel) const;
  uint64_t ChunkCount(uint32_t channel) const;
  Step ChunkOf(uint32_t channel, uint64_t part, uint64_t chunk) const;
  // Returns the order of all messages of a phase: chunk by chunk, each with every other rank.
  ExchangeOrder OrderOf(uint32_t channel) const;
  Step ReduceStep(const LaneId& lane, const ExchangeOrder::Place& place) const;
  Step GatherStep(const LaneId& lane, const ExchangeOrder::Place& place) const;

  DirectParameters parameters_;
};

}  // namespace railyard
