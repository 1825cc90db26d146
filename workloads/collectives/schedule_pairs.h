// SPDX-License-Identifier: GPL-2.0-only
// How many bytes a schedule moves between each pair of its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "workloads/collectives/schedule.h"

namespace railyard {

// By (sender, receiver), communicator ranks that differ: what the receiver takes from the sender.
// Sums that the network's switches make belong to no pair.
using RankPairBytes = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
RankPairBytes PairBytesOf(const CollectiveSchedule& schedule);

}  // namespace railyard
