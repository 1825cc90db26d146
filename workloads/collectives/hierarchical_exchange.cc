// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/hierarchical_exchange.h"

namespace railyard {

uint64_t HierarchicalExchange::Units(
    ExchangeStep step, uint32_t from, uint32_t to,
    const std::function<uint64_t(uint32_t, uint32_t)>& units) const {
  const uint32_t group_of_from = from / group_ranks;
  const uint32_t group_of_to = to / group_ranks;
  const uint32_t place = to % group_ranks;
  uint64_t sum = 0;
  if (from == to) return 0;
  if (step == ExchangeStep::kWithinGroups) {
    if (group_of_from != group_of_to) return 0;
    for (uint32_t rank = place; rank < ranks; rank += group_ranks) sum += units(from, rank);
  } else {
    if (from % group_ranks != place) return 0;
    for (uint32_t i = 0; i < group_ranks; ++i) sum += units(group_of_from * group_ranks + i, to);
  }
  return sum;
}

}  // namespace railyard
