// SPDX-License-Identifier: GPL-2.0-only
// TIMELY against algorithm 1 of its paper (Mittal et al., SIGCOMM 2015).
#include "simulator/transport/congestion/timely.h"

#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr double kLineBps = 10e9;
constexpr double kDeltaBps = 10e6;
constexpr double kBeta = 0.8;
constexpr double kWeight = 0.875;
constexpr int64_t kBaseRttUs = 20;

class TimelyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = ns3::CreateObject<Timely>();
    control_->Open({.line_rate_bps = 10'000'000'000, .base_rtt_ps = kBaseRttUs * kPsPerUs});
  }
  double Sample(int64_t rtt_us) {
    control_->OnAcknowledged(FlowId{0}, {.rtt_ps = rtt_us * kPsPerUs});
    return control_->state(FlowId{0}).rate_bps;
  }

  ns3::Ptr<Timely> control_;
};

TEST_F(TimelyTest, AboveTheHighThresholdTheRateFallsWithTheExcess) {
  EXPECT_NEAR(Sample(1'000), kLineBps * (1 - kBeta * (1 - 0.5)), 1);
  EXPECT_NEAR(Sample(2'000), kLineBps * 0.6 * (1 - kBeta * (1 - 0.25)), 1);
  EXPECT_NEAR(static_cast<double>(control_->limits(FlowId{0}).rate_bps), 2.4e9, 1);
}

TEST_F(TimelyTest, BelowTheLowThresholdTheRateRisesWhateverTheGradient) {
  const double rate_bps = Sample(1'000);
  EXPECT_NEAR(Sample(30), rate_bps + kDeltaBps, 1);
  EXPECT_NEAR(Sample(40), rate_bps + 2 * kDeltaBps, 1);
}

TEST_F(TimelyTest, BetweenThresholdsARisingGradientCutsInProportion) {
  Sample(100);
  const double before_bps = control_->state(FlowId{0}).rate_bps;
  // 4 us more: difference = 0.875 x 4 us, over the min rtt of 20 us.
  const double gradient = kWeight * 4 / static_cast<double>(kBaseRttUs);
  EXPECT_NEAR(Sample(104), before_bps * (1 - kBeta * gradient), 1);
  // 2 us more: the mean of differences goes on.
  const double next = ((1 - kWeight) * kWeight * 4 + kWeight * 2) / static_cast<double>(kBaseRttUs);
  EXPECT_NEAR(Sample(106), before_bps * (1 - kBeta * gradient) * (1 - kBeta * next), 1);
}

TEST_F(TimelyTest, AFallingGradientAddsAndFromTheFifthOnFiveTimesAsMuch) {
  const double low_bps = Sample(10'000);
  double rate_bps = low_bps;
  int64_t rtt_us = 400;
  for (int falling = 1; falling <= 8; ++falling) {
    const double now_bps = Sample(rtt_us--);
    EXPECT_NEAR(now_bps, rate_bps + kDeltaBps * (falling >= 4 ? 5 : 1), 1) << falling;
    rate_bps = now_bps;
  }
}

// The paper's 10 Mb/s are a thousandth of its ports' 10 Gb/s.
TEST_F(TimelyTest, TheIncreaseIsAShareOfLineRate) {
  control_->Open({.line_rate_bps = 400'000'000'000, .base_rtt_ps = kBaseRttUs * kPsPerUs});
  control_->OnAcknowledged(FlowId{1}, {.rtt_ps = 1'000 * kPsPerUs});
  const double rate_bps = control_->state(FlowId{1}).rate_bps;
  control_->OnAcknowledged(FlowId{1}, {.rtt_ps = 30 * kPsPerUs});
  EXPECT_NEAR(control_->state(FlowId{1}).rate_bps, rate_bps + 40 * kDeltaBps, 1);
}

TEST_F(TimelyTest, TheRateStaysBetweenItsLeastAndTheLine) {
  for (int i = 0; i < 100; ++i) Sample(100'000);
  EXPECT_EQ(control_->limits(FlowId{0}).rate_bps, 100'000'000u);
  for (int i = 0; i < 2'000; ++i) Sample(30);
  EXPECT_EQ(control_->limits(FlowId{0}), SendLimits{});
}

}  // namespace
}  // namespace railyard
