// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/hierarchical_exchange.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

// Every pair another number: of what went where nothing can hide.
uint64_t Units(uint32_t from, uint32_t to) { return 1 + 100 * from + to; }

// Moves what ranks have, item by item, as the two steps say; what arrives must be what was meant.
TEST(HierarchicalExchangeTest, EverythingArrivesOnceAndStaysOnItsRail) {
  const HierarchicalExchange exchange{.ranks = 12, .group_ranks = 4};
  // The amount that each rank holds, by final receiver.
  std::vector<std::map<uint32_t, uint64_t>> held(12);
  for (uint32_t from = 0; from < 12; ++from) {
    for (uint32_t to = 0; to < 12; ++to) held[from][to] = Units(from, to);
  }
  for (const ExchangeStep step : {ExchangeStep::kWithinGroups, ExchangeStep::kBetweenGroups}) {
    const bool is_within = step == ExchangeStep::kWithinGroups;
    std::vector<std::map<uint32_t, uint64_t>> next(12);
    for (uint32_t from = 0; from < 12; ++from) {
      std::map<uint32_t, uint64_t> sent;
      for (const auto& [receiver, units] : held[from]) {
        const uint32_t to = is_within ? from / 4 * 4 + receiver % 4 : receiver;
        sent[to] += units;
        next[to][receiver] += units;
      }
      for (uint32_t to = 0; to < 12; ++to) {
        const uint64_t units = exchange.Units(step, from, to, Units);
        if (units == 0) continue;
        EXPECT_EQ(units, sent[to]) << from << " to " << to;
        EXPECT_NE(from, to);
        EXPECT_TRUE(is_within ? from / 4 == to / 4 : from % 4 == to % 4);
        sent.erase(to);
      }
      sent.erase(from);  // kept
      EXPECT_TRUE(sent.empty() || (sent.size() == 1 && sent.begin()->second == 0));
    }
    held = next;
  }
  for (uint32_t to = 0; to < 12; ++to) {
    uint64_t meant = 0;
    for (uint32_t from = 0; from < 12; ++from) meant += Units(from, to);
    ASSERT_EQ(held[to].size(), 1u);
    EXPECT_EQ(held[to][to], meant);
  }
}

// Equal parts m on n ranks: n/g m to each of g - 1, then g m to each of n/g - 1.
TEST(HierarchicalExchangeTest, EqualPartsAreCollectedIntoFewMessages) {
  const HierarchicalExchange exchange{.ranks = 32, .group_ranks = 8};
  const auto seven = [](uint32_t, uint32_t) -> uint64_t { return 7; };
  EXPECT_EQ(exchange.Units(ExchangeStep::kWithinGroups, 3, 5, seven), 4u * 7);
  EXPECT_EQ(exchange.Units(ExchangeStep::kBetweenGroups, 3, 11, seven), 8u * 7);
  EXPECT_EQ(exchange.Units(ExchangeStep::kWithinGroups, 3, 11, seven), 0u);
  EXPECT_EQ(exchange.Units(ExchangeStep::kBetweenGroups, 3, 12, seven), 0u);
}

}  // namespace
}  // namespace railyard
