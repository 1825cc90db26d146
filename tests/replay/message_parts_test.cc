// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/message_parts.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(QueuePairRuleTest, MessagesTakeQueuePairsInTurnOrAreSplit) {
  const QueuePairRule turns{.count = 3, .is_split = false};
  EXPECT_EQ(turns.PartCount(), 1u);
  EXPECT_EQ(turns.IndexOf(0, 0), 0u);
  EXPECT_EQ(turns.IndexOf(5, 0), 2u);
  EXPECT_EQ(turns.PartBytes(1'000, 0), 1'000u);
  // Shares of 384 B: 1,000 / 3 rounded up to 128.
  const QueuePairRule split{.count = 3, .is_split = true};
  EXPECT_EQ(split.PartCount(), 3u);
  EXPECT_EQ(split.IndexOf(5, 2), 2u);
  EXPECT_EQ(split.PartBytes(1'000, 0), 384u);
  EXPECT_EQ(split.PartBytes(1'000, 2), 232u);
  EXPECT_EQ(split.PartBytes(100, 0), 100u);
  EXPECT_EQ(split.PartBytes(100, 1), 0u);
}

TEST(PartsInOrderTest, AMessageCountsOnceThoseBeforeItDo) {
  const QueuePairRule rule{.count = 2, .is_split = false};
  PartsInOrder parts(rule);
  EXPECT_EQ(parts.Take(rule, 1), 0u);  // message 1
  EXPECT_EQ(parts.Take(rule, 1), 0u);  // 3
  EXPECT_EQ(parts.Take(rule, 0), 2u);  // 0: 0 and 1
  EXPECT_EQ(parts.Take(rule, 0), 2u);  // 2: 2 and 3
}

TEST(PartsInOrderTest, ASplitMessageCountsWithItsLastPart) {
  const QueuePairRule rule{.count = 2, .is_split = true};
  PartsInOrder parts(rule);
  EXPECT_EQ(parts.Take(rule, 1), 0u);  // of message 0
  EXPECT_EQ(parts.Take(rule, 1), 0u);  // of 1
  EXPECT_EQ(parts.Take(rule, 0), 1u);
  EXPECT_EQ(parts.Take(rule, 0), 1u);
}

TEST(PartsInOrderTest, GoesOnFromAnyTurn) {
  const QueuePairRule rule{.count = 4, .is_split = false};
  PartsInOrder parts(rule);
  parts.Rebase(rule, 3);
  EXPECT_EQ(parts.Take(rule, 0), 0u);  // message 4
  EXPECT_EQ(parts.Take(rule, 3), 2u);  // 3: 3 and 4
}

}  // namespace
}  // namespace railyard
