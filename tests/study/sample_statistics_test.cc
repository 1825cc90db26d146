// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/sample_statistics.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(SampleStatisticsTest, AMeanHasStudentsBounds) {
  // Mean 3, standard deviation sqrt(2.5), t of 4 degrees of freedom 2.776.
  const Estimate mean = MeanOf({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(mean.value, 3);
  EXPECT_NEAR(mean.high.value() - 3, 2.776 * std::sqrt(2.5 / 5), 1e-9);
  EXPECT_NEAR(mean.low.value(), 6 - mean.high.value(), 1e-9);
  EXPECT_FALSE(MeanOf({7}).low.has_value());
}

// Tables of the sign test: of 10 values the median lies between the 2nd and the 9th with 97.9 %, of
// 5 no two of them hold it with 95 %.
TEST(SampleStatisticsTest, AMediansBoundsAreOrderStatistics) {
  std::vector<double> values(10);
  std::iota(values.begin(), values.end(), 1);
  const Estimate median = QuantileOf(values, 0.5);
  EXPECT_EQ(median.value, 5);
  EXPECT_EQ(median.low, 2);
  EXPECT_EQ(median.high, 9);
  const Estimate of_five = QuantileOf({1, 2, 3, 4, 5}, 0.5);
  EXPECT_FALSE(of_five.low.has_value());
  EXPECT_FALSE(of_five.high.has_value());
}

// At least 95 % of samples of 50 from the uniform distribution on [0, 1) hold the true quantile;
// 1,000 samples may show 93 % by chance.
TEST(SampleStatisticsTest, BoundsHoldAsOftenAsTheySay) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform;
  for (const double q : {0.5, 0.9}) {
    int held = 0;
    for (int sample = 0; sample < 1'000; ++sample) {
      std::vector<double> values(50);
      for (double& value : values) value = uniform(random);
      const Estimate estimate = QuantileOf(values, q);
      held += (!estimate.low || *estimate.low <= q) && (!estimate.high || q <= *estimate.high);
    }
    EXPECT_GE(held, 930);
  }
}

}  // namespace
}  // namespace railyard
