// SPDX-License-Identifier: GPL-2.0-only
// When the ranks of a failed job are gone: errors are looked for every 100 ms, and a collective
// times out after 10 minutes.
#include "simulator/run/job_aborter.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

using Detection = RestartSettings::Detection;

constexpr int64_t kTenthPs = kPsPerSecond / 10;

TEST(JobAborterTest, ALauncherEndsAllRanksWhenTheFirstHasLooked) {
  EXPECT_EQ(AllRanksGonePs(Detection::kLauncher, 5 * kPsPerSecond, 4 * kPsPerSecond),
            51 * kTenthPs);
  EXPECT_EQ(AllRanksGonePs(Detection::kLauncher, 5 * kPsPerSecond, 0), 51 * kTenthPs);
}

TEST(JobAborterTest, WithoutALauncherTheLastCollectiveMustTimeOut) {
  EXPECT_EQ(AllRanksGonePs(Detection::kWatchdog, 5 * kPsPerSecond, 4 * kPsPerSecond),
            604 * kPsPerSecond);
  EXPECT_EQ(AllRanksGonePs(Detection::kWatchdog, 5 * kPsPerSecond, 7 * kPsPerSecond),
            607 * kPsPerSecond);
}

TEST(JobAborterTest, ARankWithAnErrorLooksForItEvenIfAllHaveTimedOut) {
  EXPECT_EQ(AllRanksGonePs(Detection::kWatchdog, 700 * kPsPerSecond, 0), 7001 * kTenthPs);
  EXPECT_EQ(AllRanksGonePs(Detection::kWatchdog, 600 * kPsPerSecond, kTenthPs), 6001 * kTenthPs);
}

}  // namespace
}  // namespace railyard
