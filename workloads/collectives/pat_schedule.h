// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's PAT (parallel aggregated trees; src/include/collectives.h, PatAGAlgorithm and
// PatRSAlgorithm) as a CollectiveSchedule: AllGather and ReduceScatter in which every rank's block
// has a separate binomial tree, and blocks that move along the same edge at the same time share a
// message.
//
// A block's distance to a rank counts downwards: rank (b - s) mod n has distance s from block b.
// AllGather moves a block from distance s - 2^d to s, where 2^d is the lowest bit of s, so each
// rank sends to rank - 2^d; ReduceScatter runs the same messages backwards, to rank + 2^d. With an
// aggregation of f, one message has the blocks of f distances, spaced n2 / f, where n2 is n rounded
// up to a power of two.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/schedule.h"
#include "workloads/collectives/shaped_schedule.h"

namespace railyard {

struct PatParameters {
  CollectiveKind kind = CollectiveKind::kAllGather;  // or ReduceScatter
  uint32_t rank_count = 0;
  uint64_t block_bytes = 0;
  std::vector<ChannelShare> shares;   // by channel, of each block
  std::vector<uint64_t> chunk_bytes;  // by channel: largest message
  MessageRule message_rule;
};

class PatSchedule final : public ExchangeSchedule {
 public:
  // Preconditions: there are at least two ranks; each channel has a share and a chunk size.
  explicit PatSchedule(PatParameters parameters);

  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  // Describes one message of AllGather: `count` blocks whose distances to the receiver are `first`,
  // `first` + `stride` and so on. The lowest bit of `first` is the dimension along which they
  // travel.
  struct Aggregate {
    uint32_t first = 0;
    uint32_t stride = 0;
    uint32_t count = 0;
    uint32_t way() const { return first & (0 - first); }
  };
  // Names one step of every rank in AllGather; ReduceScatter runs the steps backwards.
  enum class Action : uint8_t { kCopy, kSend, kReceive };
  struct Operation {
    Action action = Action::kCopy;
    uint32_t pass = 0;  // over the channel's chunks
    Aggregate aggregate;
  };
  // Describes a program: the operations of `ends`, of which [cycle_begin, cycle_end) is repeated
  // `cycles` times, each time one pass later.
  struct Program {
    std::vector<Operation> ends;
    size_t cycle_begin = 0;
    size_t cycle_end = 0;
    uint64_t cycles = 1;
    uint64_t step_count() const;
    Operation At(uint64_t step) const;
  };
  bool IsGather() const { return parameters_.kind == CollectiveKind::kAllGather; }
  uint64_t PassCount(uint32_t channel) const;
  uint32_t AggregationOf(uint32_t channel) const;
  std::vector<Aggregate> AggregatesOf(uint32_t aggregation) const;
  std::vector<int64_t> PlacesOf(const std::vector<Aggregate>& aggregates,
                                uint32_t aggregation) const;
  Program ProgramOf(uint32_t aggregation, uint64_t passes) const;

  PatParameters parameters_;
  std::vector<Program> programs_;   // the same for all ranks
  std::vector<size_t> program_of_;  // by channel
};

}  // namespace railyard
