// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "traces/trace/trace.h"

namespace railyard {

// Returns true if the whole of a collective's data consists of equal blocks, one for each rank.
constexpr bool IsMadeOfBlocks(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

}  // namespace railyard
