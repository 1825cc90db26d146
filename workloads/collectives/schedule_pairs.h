// SPDX-License-Identifier: GPL-2.0-only
// Counts the bytes that a schedule moves between each pair of its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "workloads/collectives/schedule.h"

namespace railyard {

// Bytes that the receiver takes from the sender, by (sender, receiver), two different communicator
// ranks. Sums made by the network's switches belong to no pair.
using RankPairBytes = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
RankPairBytes PairBytesOf(const CollectiveSchedule& schedule);

}  // namespace railyard
