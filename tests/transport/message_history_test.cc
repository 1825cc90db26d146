// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/message_history.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

// Messages of three packets and 10 bytes each, whose sequence numbers wrap around.
class MessageHistoryTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kFirst = UINT32_MAX - 7;
  static constexpr QueueId kQueue{5};

  void Complete(uint32_t messages) {
    for (; messages > 0; --messages) {
      history_.Add(kQueue, {.first_sequence = next_, .end_sequence = next_ + 3, .bytes = 10});
      next_ += 3;
    }
  }

  MessageHistory history_;
  uint32_t next_ = kFirst;
};

TEST_F(MessageHistoryTest, FindsTheMessageOfEachPacket) {
  Complete(20);
  for (uint32_t packet = 0; packet < 60; ++packet) {
    const auto found = history_.Find(kQueue, kFirst + packet);
    ASSERT_TRUE(found) << packet;
    EXPECT_EQ(found->number, packet / 3);
    EXPECT_EQ(found->offset_bytes, 10 * (packet / 3));
    EXPECT_EQ(found->message.first_sequence, kFirst + packet / 3 * 3);
  }
  EXPECT_FALSE(history_.Find(kQueue, kFirst - 1)) << "before all";
  EXPECT_FALSE(history_.Find(kQueue, next_)) << "not complete";
  EXPECT_FALSE(history_.Find(QueueId{kQueue - 1}, kFirst)) << "of a queue without messages";
  EXPECT_FALSE(history_.Find(QueueId{kQueue + 1}, kFirst)) << "of a queue beyond all";
  EXPECT_EQ(history_.Next(kQueue).number, 20u);
  EXPECT_EQ(history_.Next(kQueue).offset_bytes, 200u);
  EXPECT_EQ(history_.Next(QueueId{kQueue + 1}).number, 0u);
}

TEST_F(MessageHistoryTest, ForgetsTheOldestAndGoesOnCounting) {
  constexpr uint32_t kMore = 100;
  Complete(MessageHistory::kMessagesMax + kMore);
  EXPECT_FALSE(history_.Find(kQueue, kFirst + 3 * kMore - 1));
  const auto oldest = history_.Find(kQueue, kFirst + 3 * kMore);
  ASSERT_TRUE(oldest);
  EXPECT_EQ(oldest->number, kMore);
  EXPECT_EQ(oldest->offset_bytes, 10 * kMore);
}

}  // namespace
}  // namespace railyard
