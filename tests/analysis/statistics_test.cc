// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/statistics.h"

#include <numeric>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(NearestRankTest, IsTheSmallestValueThatEnoughOfTheValuesDoNotExceed) {
  // Five values: at least half are not above the third; at least 90 % only with the fifth.
  EXPECT_EQ(NearestRankIndex(5, 500), 2u);
  EXPECT_EQ(NearestRankIndex(5, 900), 4u);
  EXPECT_EQ(NearestRankIndex(5, 200), 0u);
  EXPECT_EQ(NearestRankIndex(5, 201), 1u);
}

TEST(NearestRankTest, OfOneValueIsThatValue) {
  for (const uint32_t permille : {1u, 500u, 999u, 1000u}) {
    EXPECT_EQ(NearestRankIndex(1, permille), 0u);
  }
}

TEST(NearestRankTest, OfAThousandValuesTheNineHundredNinetyNinthIsTheLastButOne) {
  EXPECT_EQ(NearestRankIndex(1000, 999), 998u);
  EXPECT_EQ(NearestRankIndex(1001, 999), 999u);
  EXPECT_EQ(NearestRankIndex(1000, 1000), 999u);
}

TEST(NearestRankDeathTest, StopsAtPercentilesThatDoNotExist) {
  EXPECT_DEATH(NearestRankIndex(0, 500), "no such percentile");
  EXPECT_DEATH(NearestRankIndex(5, 0), "no such percentile");
  EXPECT_DEATH(NearestRankIndex(5, 1001), "no such percentile");
}

TEST(DurationStatisticsTest, OfOneToAThousandInAnyOrder) {
  std::vector<int64_t> values(1000);
  std::iota(values.rbegin(), values.rend(), 1);
  const auto statistics = SummarizeDurations(values);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->min_ps, 1);
  EXPECT_EQ(statistics->p50_ps, 500);
  EXPECT_EQ(statistics->p90_ps, 900);
  EXPECT_EQ(statistics->p99_ps, 990);
  EXPECT_EQ(statistics->p999_ps, 999);
  EXPECT_EQ(statistics->max_ps, 1000);
}

TEST(StatisticsTest, OfNothingDoNotExist) {
  EXPECT_FALSE(SummarizeDurations({}));
  EXPECT_FALSE(SummarizeStretches({}));
  EXPECT_FALSE(SummarizeRates({}));
}

TEST(StretchStatisticsTest, MeanOfOnesIsExactlyOne) {
  const auto statistics = SummarizeStretches(std::vector<double>(600'000, 1.0));
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->mean, 1.0);
  EXPECT_EQ(statistics->max, 1.0);
}

TEST(StretchStatisticsTest, MeanDoesNotDependOnTheOrder) {
  const std::vector<double> values = {0.1, 1e16, 1.0, 3.0, 1e-9};
  std::vector<double> reversed(values.rbegin(), values.rend());
  EXPECT_EQ(SummarizeStretches(values)->mean, SummarizeStretches(reversed)->mean);
}

TEST(RateStatisticsTest, MedianOfTwoIsTheLower) {
  const auto statistics = SummarizeRates({30, 10});
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->min, 10);
  EXPECT_EQ(statistics->p50, 10);
  EXPECT_EQ(statistics->max, 30);
}

}  // namespace
}  // namespace railyard
