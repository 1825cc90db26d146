// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/units/divide_up.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(DivideUpTest, RoundsUp) {
  EXPECT_EQ(DivideUp(0, 5), 0u);
  EXPECT_EQ(DivideUp(1, 5), 1u);
  EXPECT_EQ(DivideUp(5, 5), 1u);
  EXPECT_EQ(DivideUp(6, 5), 2u);
  EXPECT_EQ(DivideUp(7, 1), 7u);
}

TEST(DivideUpTest, TakesTheLargestNumbers) {
  EXPECT_EQ(DivideUp(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(DivideUp(UINT64_MAX, 2), uint64_t{1} << 63);
  EXPECT_EQ(DivideUp(UINT64_MAX, UINT64_MAX), 1u);
  EXPECT_EQ(DivideUp(1, UINT64_MAX), 1u);
}

}  // namespace
}  // namespace railyard
