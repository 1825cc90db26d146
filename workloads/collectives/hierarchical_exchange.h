// SPDX-License-Identifier: GPL-2.0-only
// An AllToAll or AllToAllv in two steps: first within groups of consecutive ranks, where each rank
// hands every other what is meant for that one's place in any group, then between the ranks that
// have the same place in their groups. With a server's GPUs as a group all that crosses the network
// stays on its rail, and a rank sends one message to each other server instead of one to each of
// its GPUs (the 2DH algorithm of Hwang et al., "Tutel", MLSys 2023). What crosses the network is
// the same; what is not meant for the rank's own place moves within a group first.
#pragma once

#include <cstdint>
#include <functional>

namespace railyard {

enum class ExchangeStep : uint8_t { kWithinGroups, kBetweenGroups };

struct HierarchicalExchange {
  uint32_t ranks = 0;
  uint32_t group_ranks = 1;  // a divisor of `ranks`

  // What `from` sends `to` in a step, where `units(a, b)` are what a has for b: bytes, elements or
  // tokens. A rank keeps what it has for its own place: 0 to itself.
  uint64_t Units(ExchangeStep step, uint32_t from, uint32_t to,
                 const std::function<uint64_t(uint32_t, uint32_t)>& units) const;
};

}  // namespace railyard
