// SPDX-License-Identifier: GPL-2.0-only
// Defines the meaning of a collective's size, by its kind.
#pragma once

#include <cstdint>

#include "traces/trace/collective_blocks.h"
#include "traces/trace/trace.h"

namespace railyard {

// Returns true if NCCL's count is that of one rank's block, which holds for AllGather and
// ReduceScatter.
constexpr bool CountsOneBlock(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

// Returns busbw over algbw, as nccl-tests defines it (src/*.cu, GetBw).
constexpr double BusbwFactor(CollectiveKind kind, uint32_t ranks) {
  const double n = ranks;
  if (kind == CollectiveKind::kAllReduce) return 2 * (n - 1) / n;
  return IsMadeOfBlocks(kind) ? (n - 1) / n : 1;
}

// Returns the same of an AllToAllv, whose factor is the mean of its ranks', so that one of equal
// parts has an AllToAll's.
constexpr double AllToAllvBusbwFactor(uint32_t ranks) { return 1.0 / ranks; }

}  // namespace railyard
