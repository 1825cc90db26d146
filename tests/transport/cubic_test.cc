// SPDX-License-Identifier: GPL-2.0-only
// CUBIC against RFC 9438, section 4.
#include "simulator/transport/congestion/cubic.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr double kBeta = 0.7;
constexpr double kScaling = 0.4;
constexpr double kInitialWindow = 10;

class CubicTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = ns3::CreateObject<Cubic>();
    control_->Open({.window_bytes = 100'000'000, .mtu_bytes = 1'000, .base_rtt_ps = rtt_ps_});
  }
  const Cubic::State& state() const { return control_->state(FlowId{0}); }
  double Window() const { return state().window; }
  // All of a window is sent at once and acknowledged one by one within a round trip.
  void RoundTrip() {
    const auto segments = static_cast<uint32_t>(std::floor(Window()));
    for (uint32_t i = 0; i < segments; ++i) {
      now_ps_ += rtt_ps_ / segments;
      Acknowledge(1);
    }
  }
  void Acknowledge(uint32_t segments) {
    acknowledged_ += segments;
    control_->OnAcknowledged(
        FlowId{0}, {.now_ps = now_ps_,
                    .rtt_ps = rtt_ps_,
                    .acknowledged_packets = segments,
                    .expected_sequence = acknowledged_,
                    .next_sequence = acknowledged_ + static_cast<uint32_t>(std::floor(Window()))});
  }
  // Slow start up to a window of this many segments, which are then in flight.
  void GrowTo(uint32_t segments) {
    Acknowledge(segments - static_cast<uint32_t>(Window()));
    Acknowledge(0);
  }
  // All segments in flight at the loss are acknowledged.
  void EndRecovery() {
    acknowledged_ = state().recovery_end - 1;
    Acknowledge(1);
  }

  ns3::Ptr<Cubic> control_;
  int64_t rtt_ps_ = 100 * kPsPerMs;
  int64_t now_ps_ = 0;
  uint32_t acknowledged_ = 0;
};

TEST_F(CubicTest, SlowStartDoublesTheWindowEachRoundTrip) {
  double window = kInitialWindow;
  EXPECT_EQ(Window(), window);
  for (int round = 0; round < 6; ++round) {
    RoundTrip();
    window *= 2;
    EXPECT_EQ(Window(), window);
    EXPECT_EQ(control_->limits(FlowId{0}).window_bytes, static_cast<uint64_t>(window) * 1'000);
    EXPECT_EQ(control_->limits(FlowId{0}).rate_bps, SendLimits::kNoLimit);
  }
}

// W(t) = C (t - K)^3 + W_max: concave up to W_max at K, convex behind it.
TEST_F(CubicTest, AfterALossTheWindowIsTheCubicFunctionOfTime) {
  GrowTo(1'000);
  const double window_max = Window();
  control_->OnNack(FlowId{0}, now_ps_);
  EXPECT_DOUBLE_EQ(Window(), kBeta * window_max);
  EndRecovery();
  const int64_t epoch_ps = now_ps_;
  const double k = std::cbrt(window_max * (1 - kBeta) / kScaling);
  EXPECT_NEAR(k, 9.09, 0.01);
  for (int round = 0; round < 150; ++round) {
    RoundTrip();
    const double t = static_cast<double>(now_ps_ - epoch_ps) * 1e-12;
    const double expected = kScaling * std::pow(t - k, 3) + window_max;
    EXPECT_NEAR(Window(), expected, 0.012 * expected) << t << " s";
  }
  EXPECT_GT(Window(), 1.02 * window_max);
}

// With short round trips Reno's window is the larger: W_est grows by 3 (1 - beta) / (1 + beta) a
// round trip, and by 1 from the window before the loss on.
TEST_F(CubicTest, WithShortRoundTripsTheWindowIsRenos) {
  rtt_ps_ = 100 * kPsPerUs;
  GrowTo(100);
  control_->OnNack(FlowId{0}, now_ps_);
  EXPECT_DOUBLE_EQ(Window(), 70);
  EndRecovery();
  const double alpha = 3 * (1 - kBeta) / (1 + kBeta);
  for (int round = 1; round <= 40; ++round) {
    RoundTrip();
    EXPECT_NEAR(Window(), 70 + alpha * round, 0.02 * Window());
  }
  while (Window() < 101) RoundTrip();
  const double before = Window();
  for (int round = 0; round < 40; ++round) RoundTrip();
  EXPECT_NEAR(Window(), before + 40, 0.02 * Window());
}

TEST_F(CubicTest, LossesOfOneWindowCutItOnce) {
  GrowTo(1'000);
  control_->OnNack(FlowId{0}, now_ps_);
  control_->OnNack(FlowId{0}, now_ps_);
  EXPECT_DOUBLE_EQ(Window(), 700);
  Acknowledge(10);
  EXPECT_DOUBLE_EQ(Window(), 700);  // and does not grow until they are repaired
  EndRecovery();
  control_->OnNack(FlowId{0}, now_ps_);
  EXPECT_NEAR(Window(), 490, 1);
}

// Fast convergence: who is cut below its last maximum leaves room to others.
TEST_F(CubicTest, ASecondLossBelowTheMaximumLowersIt) {
  GrowTo(1'000);
  control_->OnNack(FlowId{0}, now_ps_);
  EXPECT_DOUBLE_EQ(state().window_max, 1'000);
  EndRecovery();
  const double window = Window();
  control_->OnNack(FlowId{0}, now_ps_);
  EXPECT_NEAR(state().window_max, window * (1 + kBeta) / 2, 1e-6);
}

TEST_F(CubicTest, ATimeoutStartsAgainAtOneSegment) {
  GrowTo(1'000);
  control_->OnTimeout(FlowId{0}, now_ps_);
  EXPECT_EQ(Window(), 1);
  EXPECT_DOUBLE_EQ(state().threshold, 700);
  control_->OnTimeout(FlowId{0}, now_ps_);
  EXPECT_DOUBLE_EQ(state().threshold, 700);  // the same loss
  for (int round = 0; round < 5; ++round) RoundTrip();
  EXPECT_EQ(Window(), 32);
}

TEST_F(CubicTest, AWindowThatIsNotUsedDoesNotGrow) {
  for (int i = 0; i < 100; ++i) {
    ++acknowledged_;
    control_->OnAcknowledged(FlowId{0}, {.now_ps = now_ps_,
                                         .rtt_ps = rtt_ps_,
                                         .acknowledged_packets = 1,
                                         .expected_sequence = acknowledged_,
                                         .next_sequence = acknowledged_ + 1});
  }
  EXPECT_EQ(Window(), kInitialWindow);
}

TEST_F(CubicTest, TheReceiversBufferIsTheLargestWindow) {
  GrowTo(99'999);
  Acknowledge(100'000);
  EXPECT_EQ(Window(), 100'000);
}

}  // namespace
}  // namespace railyard
