// SPDX-License-Identifier: GPL-2.0-only
// Divides one collective over channels as NCCL does for Ring and Tree: the continuous byte
// distribution of scheduleCollTasksToPlan (src/enqueue.cc) after the channel count of getAlgoInfo.
// PAT and the algorithms that NCCL does not have use Ring's thresholds, which is an assumption. Two
// things are left out: packing the collectives of one ncclGroup behind each other (each is placed
// as if it were the only one), and the equal split of NCCL before 2.22, which differs by less than
// a cell.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

// Describes the contiguous part of the vector (or of every block) on which a channel works.
struct ChannelShare {
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;  // 0 if the channel is idle
};

struct SplitInput {
  uint32_t version = 0;  // encoded as by ncclGetVersion
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint64_t count = 0;  // elements, as the API counts them
  uint32_t element_bytes = 1;
  uint32_t rank_count = 0;
  uint32_t channel_count = 0;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
};

// Returns one share per channel; they cover count x element_bytes without gap or overlap.
std::vector<ChannelShare> SplitOverChannels(const SplitInput& input);

}  // namespace railyard
