// SPDX-License-Identifier: GPL-2.0-only
// Divides an AllToAll or AllToAllv into two steps. First, within each group of consecutive ranks, a
// rank sends to every other member the data that is meant for that member's place in any group.
// Then ranks with the same place in their groups exchange data across groups. With a server's GPUs
// as a group, all traffic between servers stays on its rail, and a rank sends one message to each
// other server instead of one to each of its GPUs (the 2DH algorithm of Hwang et al., "Tutel",
// MLSys 2023). The bytes between servers are the same as without groups; in addition, data that is
// not meant for the rank's place moves within the group.
#pragma once

#include <cstdint>
#include <functional>

namespace railyard {

enum class ExchangeStep : uint8_t { kWithinGroups, kBetweenGroups };

struct HierarchicalExchange {
  uint32_t ranks = 0;
  uint32_t group_ranks = 1;  // a divisor of `ranks`

  // Returns the units (bytes, elements or tokens) that `from` sends `to` in a step; `units(a, b)`
  // is the amount that a has for b. A rank keeps the data for its own place, so it sends 0 to
  // itself.
  uint64_t Units(ExchangeStep step, uint32_t from, uint32_t to,
                 const std::function<uint64_t(uint32_t, uint32_t)>& units) const;
};

}  // namespace railyard
