// SPDX-License-Identifier: GPL-2.0-only
// Some random fault timelines, for builds with sanitizers too.
#include "tests/scenarios/random_timeline.h"

namespace railyard::testing {
namespace {

class FaultTimelinesTest : public RandomTimelineTest,
                           public ::testing::WithParamInterface<uint32_t> {};

TEST_P(FaultTimelinesTest, EndWithATrueExplanation) {
  for (uint32_t seed = GetParam(); seed < GetParam() + 15; ++seed) Check(seed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultTimelinesTest, ::testing::Range(10000u, 10060u, 15u));

}  // namespace
}  // namespace railyard::testing
