// SPDX-License-Identifier: GPL-2.0-only
// Describes direct exchange, a baseline from research, as a CollectiveSchedule: every rank sends to
// every other rank the data of the receiver's result (ReduceScatter) or its own block (AllGather).
// AllReduce runs the former and then the latter with one part per rank (Chan et al.: "Collective
// communication: theory, practice, and experience", 2007; "direct" in ASTRA-sim). NCCL has no such
// algorithm.
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
  // Returns the order of all messages of a phase: chunk by chunk, and for each chunk every other
  // rank.
  ExchangeOrder OrderOf(uint32_t channel) const;
  Step ReduceStep(const LaneId& lane, const ExchangeOrder::Place& place) const;
  Step GatherStep(const LaneId& lane, const ExchangeOrder::Place& place) const;

  DirectParameters parameters_;
};

}  // namespace railyard
