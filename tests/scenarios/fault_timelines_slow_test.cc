// SPDX-License-Identifier: GPL-2.0-only
// More than a thousand random fault timelines.
#include "tests/scenarios/random_timeline.h"

namespace railyard::testing {
namespace {

constexpr uint32_t kTimelines = 1600;
constexpr uint32_t kParts = 8;

class FaultTimelinesSlowTest : public RandomTimelineTest,
                               public ::testing::WithParamInterface<uint32_t> {};

TEST_P(FaultTimelinesSlowTest, EndWithATrueExplanation) {
  constexpr uint32_t kEach = kTimelines / kParts;
  for (uint32_t seed = GetParam() * kEach; seed < (GetParam() + 1) * kEach; ++seed) {
    Check(seed);
    if (HasFailure()) return;
  }
  // All that is drawn happens.
  for (const char* what :
       {"COMPLETED", "JOB_ABORTED", "restarts", "restarts of jobs", "port_failovers"}) {
    EXPECT_GT(seen_[what], 0) << what;
  }
  // Rarer: nothing may end a job that waits for ever; both ends of a connection have to fail, and
  // the job to last until the port is back; a server has to be broken still when its job is back.
  if (GetParam() == 0) {
    EXPECT_GT(seen_["STALLED"], 0);
    EXPECT_GT(seen_["port_recoveries"], 0);
    EXPECT_GT(seen_["servers replaced"], 0);
    EXPECT_GT(seen_["nic_failovers"], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultTimelinesSlowTest, ::testing::Range(0u, kParts));

}  // namespace
}  // namespace railyard::testing
