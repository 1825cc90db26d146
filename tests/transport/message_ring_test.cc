// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/message_ring.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(MessageRingTest, IsEmptyAtFirstAndAfterTheLastIsTaken) {
  MessageRing ring;
  EXPECT_TRUE(ring.empty());
  ring.PushBack({0, 1, 10}, 9);
  EXPECT_FALSE(ring.empty());
  ring.PopFront();
  EXPECT_TRUE(ring.empty());
}

TEST(MessageRingTest, APositionNamesItsMessageWhileOthersComeAndGoAndTheRingGrows) {
  MessageRing ring;
  // Always one more pushed than popped: up to 1,000 are open, over many sizes of the ring.
  uint32_t popped = 0;
  for (uint32_t pushed = 0; pushed < 2'000; ++pushed) {
    ring.PushBack({pushed, pushed + 1, 3 * pushed}, 2 * pushed);
    if (pushed % 2 == 1) {
      ring.PopFront();
      ++popped;
    }
    EXPECT_EQ(ring.first(), popped);
    EXPECT_EQ(ring.end(), pushed + 1);
    EXPECT_EQ(ring.at(ring.first()).bytes, 3 * popped);
    EXPECT_EQ(ring.at(ring.end() - 1).bytes, 3 * pushed);
  }
  for (uint32_t position = ring.first(); position != ring.end(); ++position) {
    EXPECT_EQ(ring.at(position).first_sequence, position);
    EXPECT_EQ(ring.at(position).end_sequence, position + 1);
  }
}

}  // namespace
}  // namespace railyard
