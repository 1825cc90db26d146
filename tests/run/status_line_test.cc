// SPDX-License-Identifier: GPL-2.0-only
// Tests which part of a report of progress fits into a terminal's line.
#include "simulator/cli/status_line.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(StatusLineTest, AllPartsFollowOneAnotherWhereTheyFit) {
  EXPECT_EQ(FitParts({"abc", ", de", "; f"}, 10), "abc, de; f");
}

TEST(StatusLineTest, APartThatDoesNotFitIsLeftOutAndALaterOneThatDoesIsKept) {
  EXPECT_EQ(FitParts({"abc", ", defgh", "; i"}, 9), "abc; i");
  EXPECT_EQ(FitParts({"abc", ", defgh", "; i"}, 5), "abc");
}

TEST(StatusLineTest, OfTheFirstPartWhatFitsIsKept) {
  EXPECT_EQ(FitParts({"abcdef", "g"}, 4), "abcd");
  EXPECT_EQ(FitParts({"abc"}, 0), "");
}

}  // namespace
}  // namespace railyard
