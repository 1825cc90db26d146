// SPDX-License-Identifier: GPL-2.0-only
#include "tests/scenarios/random_scenario.h"

namespace railyard::testing {
namespace {

class PropertyTest : public RandomScenarioTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(PropertyTest, EveryRunEndsAndEveryByteIsAccountedFor) {
  for (uint32_t seed = GetParam(); seed < GetParam() + 5; ++seed) Check(seed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PropertyTest, ::testing::Range(1u, 31u, 5u));

}  // namespace
}  // namespace railyard::testing
