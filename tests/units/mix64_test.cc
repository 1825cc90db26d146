// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/units/mix64.h"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(Mix64Test, IsSplitMix64) {
  // First outputs of the published generator for seed 0, whose state grows by the golden gamma.
  EXPECT_EQ(Mix64(0), 0xe220a8397b1dcdaf);
  EXPECT_EQ(Mix64(0x9e3779b97f4a7c15), 0x6e789e6aa1b965f4);
  EXPECT_EQ(Mix64(2 * 0x9e3779b97f4a7c15), 0x06c45d188009454f);
}

TEST(Mix64Test, OneInputBitFlipsHalfOfTheOutputBits) {
  for (int bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (uint64_t value = 0; value < 1'000; ++value) {
      flipped += std::popcount(Mix64(value) ^ Mix64(value ^ (uint64_t{1} << bit)));
    }
    // 64,000 fair coins have a standard deviation of 126.
    EXPECT_NEAR(flipped, 32'000, 6 * 126) << bit;
  }
}

TEST(ScaleToTest, CoversTheRangeFromFirstToLast) {
  EXPECT_EQ(ScaleTo(0, 7), 0u);
  EXPECT_EQ(ScaleTo(UINT64_MAX, 7), 6u);
  EXPECT_EQ(ScaleTo(uint64_t{1} << 63, 8), 4u);
  EXPECT_EQ(ScaleTo(UINT64_MAX, 0), 0u);
}

}  // namespace
}  // namespace railyard
