// SPDX-License-Identifier: GPL-2.0-only
// Counts the bytes that a schedule moves between each pair of its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "workloads/collectives/schedule.h"

namespace railyard {

// Maps (sender, receiver), two different communicator ranks, to the bytes that the receiver gets
// from the sender. Sums made by the network's switches belong to no pair.
using RankPairBytes = std::map<std::pair<RankIndex, RankIndex>, uint64_t>;
RankPairBytes PairBytesOf(const CollectiveSchedule& schedule);

}  // namespace railyard
