// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/check.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(CheckDeathTest, AFailedCheckSaysWhereWhenAndHowToSeeItAgain) {
  EXPECT_DEATH(
      {
        SetCheckContext({.replay_command = "railyard run a.textproto --seed 7",
                         .virtual_time_ps = [] { return int64_t{1280}; }});
        SIM_CHECK(1 + 1 == 3, "arithmetic has gone");
      },
      "check_test\\.cc:[0-9]+: check failed: 1 \\+ 1 == 3: arithmetic has gone\n"
      "at virtual time 1280 ps\n"
      "again with: railyard run a\\.textproto --seed 7");
}

TEST(CheckTest, TheDetailIsNotEvaluatedWhileTheConditionHolds) {
  int evaluations = 0;
  const auto detail = [&] {
    ++evaluations;
    return std::string();
  };
  SIM_CHECK(true, detail());
  EXPECT_EQ(evaluations, 0);
}

}  // namespace
}  // namespace railyard
