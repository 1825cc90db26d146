// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/bootstrap.h"

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

std::optional<Interval> OfMean(const std::vector<double>& values) {
  return BootstrapInterval(values.size(), [&](std::span<const size_t> picks) {
    EXPECT_EQ(picks.size(), values.size());
    double sum = 0;
    for (const size_t pick : picks) sum += values.at(pick);
    return sum / static_cast<double>(picks.size());
  });
}

// The mean of the numbers 0 to n - 1 has a deviation of sqrt((n^2 - 1)/(12 n)).
TEST(BootstrapTest, TheIntervalOfAMeanIsThatOfTheNormalDistribution) {
  constexpr int kCount = 400;
  std::vector<double> values;
  for (int i = 0; i < kCount; ++i) values.push_back(i);
  const auto interval = OfMean(values);
  ASSERT_TRUE(interval.has_value());
  const double half = 1.96 * std::sqrt((kCount * kCount - 1) / 12.0 / kCount);
  EXPECT_NEAR(interval->low, 199.5 - half, 0.15 * half);
  EXPECT_NEAR(interval->high, 199.5 + half, 0.15 * half);
}

TEST(BootstrapTest, EqualValuesAreCertain) {
  const auto interval = OfMean(std::vector<double>(8, 3.5));
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->low, 3.5);
  EXPECT_EQ(interval->high, 3.5);
}

TEST(BootstrapTest, SevenValuesAreTooFew) {
  EXPECT_FALSE(OfMean(std::vector<double>(7, 1)).has_value());
}

}  // namespace
}  // namespace railyard
