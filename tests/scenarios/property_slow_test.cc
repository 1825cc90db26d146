// SPDX-License-Identifier: GPL-2.0-only
// The property tests with many more seeds.
#include "tests/scenarios/random_scenario.h"

namespace railyard::testing {
namespace {

class PropertySlowTest : public RandomScenarioTest,
                         public ::testing::WithParamInterface<uint32_t> {};

TEST_P(PropertySlowTest, EveryRunEndsAndEveryByteIsAccountedFor) {
  for (uint32_t seed = GetParam(); seed < GetParam() + 50; ++seed) Check(seed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PropertySlowTest, ::testing::Range(1000u, 1400u, 50u));

}  // namespace
}  // namespace railyard::testing
