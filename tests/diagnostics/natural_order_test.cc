// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/natural_order.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(NaturalOrderTest, IsByTextWithNumbersByValue) {
  // Each name comes before all that follow.
  const std::vector<std::string> names = {
      "",      "01",     "1",           "1a",           "02",     "10",  "a",
      "a9",    "a10",    "a10b2",       "a10b3",        "a010b4", "a11", "nic9",
      "nic10", "nic10/", "nic10/port2", "nic10/port10", "nica"};
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t j = 0; j < names.size(); ++j) {
      EXPECT_EQ(NaturalLess()(names[i], names[j]), i < j) << names[i] << " < " << names[j];
    }
  }
}

TEST(NaturalOrderTest, NumbersMayExceedAnyInteger) {
  EXPECT_TRUE(NaturalLess()("r99999999999999999999998", "r99999999999999999999999"));
  EXPECT_TRUE(NaturalLess()("r99999999999999999999999", "r100000000000000000000000"));
}

}  // namespace
}  // namespace railyard
