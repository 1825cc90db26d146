// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(SampleTest, AHypercubeHasOneDrawInEachIntervalAndSoHasItsFirstHalf) {
  constexpr size_t kCount = 1'024;
  for (const char* const axis : {"loss", "size"}) {
    const std::vector<double> draws = LatinHypercubeDraws(5, axis, kCount);
    ASSERT_EQ(draws.size(), kCount);
    for (size_t count = 1; count <= kCount; count *= 2) {
      std::vector<int> draws_in(count);
      for (size_t i = 0; i < count; ++i) {
        ++draws_in.at(static_cast<size_t>(draws[i] * static_cast<double>(count)));
      }
      EXPECT_EQ(draws_in, std::vector<int>(count, 1)) << axis << ", the first " << count;
    }
  }
}

TEST(SampleTest, AGrownSampleKeepsItsDraws) {
  const auto expect_prefix = [](const std::vector<double>& small,
                                const std::vector<double>& large) {
    EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  };
  expect_prefix(UniformDraws(3, "a", 100), UniformDraws(3, "a", 177));
  expect_prefix(LatinHypercubeDraws(3, "a", 64), LatinHypercubeDraws(3, "a", 256));
}

TEST(SampleTest, SeedsAndAxesDrawIndependently) {
  constexpr size_t kCount = 4'096;
  const auto correlation = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < kCount; ++i) sum += (a[i] - 0.5) * (b[i] - 0.5);
    return sum * 12 / kCount;  // the variance of a draw is 1/12
  };
  // Within four standard deviations, 1/sqrt(n) each.
  const double bound = 4 / std::sqrt(static_cast<double>(kCount));
  for (const auto draws : {&UniformDraws, &LatinHypercubeDraws}) {
    const std::vector<double> first = draws(1, "a", kCount);
    EXPECT_LT(std::abs(correlation(first, draws(2, "a", kCount))), bound);
    EXPECT_LT(std::abs(correlation(first, draws(1, "b", kCount))), bound);
    EXPECT_NEAR(correlation(first, first), 1, 0.1);
  }
}

// Kolmogorov and Smirnov's distance to the even distribution: 1.63/sqrt(n) with 99 %.
TEST(SampleTest, UniformDrawsAreEven) {
  constexpr size_t kCount = 10'000;
  std::vector<double> draws = UniformDraws(1, "x", kCount);
  std::sort(draws.begin(), draws.end());
  double distance = 0;
  for (size_t i = 0; i < kCount; ++i) {
    distance = std::max(distance, std::abs(draws[i] - static_cast<double>(i) / kCount));
  }
  EXPECT_LT(distance, 1.63 / std::sqrt(static_cast<double>(kCount)));
  EXPECT_GE(draws.front(), 0);
  EXPECT_LT(draws.back(), 1);
}

}  // namespace
}  // namespace railyard
