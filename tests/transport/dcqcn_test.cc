// SPDX-License-Identifier: GPL-2.0-only
// DCQCN's rate machine against its paper (Zhu et al., SIGCOMM 2015, section 3.1), driven by hand.
#include "simulator/transport/congestion/dcqcn.h"

#include <cmath>

#include <gtest/gtest.h>

#include <ns3/uinteger.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr uint64_t kLineBps = 400'000'000'000;
constexpr double kGain = 1.0 / 256;
constexpr int64_t kTimerPs = 55 * kPsPerUs;
constexpr uint64_t kAdditiveBps = 40'000'000;
constexpr uint64_t kHyperBps = 400'000'000;
constexpr uint64_t kByteCounter = 10'000'000;

class DcqcnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = ns3::CreateObject<Dcqcn>();
    control_->Open({.line_rate_bps = kLineBps,
                    .window_bytes = 1 << 20,
                    .mtu_bytes = 4'096,
                    .full_packet_wire_bytes = 4'178});
  }
  const Dcqcn::State& state() const { return control_->state(FlowId{0}); }
  void Look(int64_t now_ps) { control_->OnSend(FlowId{0}, now_ps, 0); }
  // Two CNPs a microsecond apart: R_T = line/2, R_C = line/4, alpha 1.
  void CutTwice() {
    control_->OnCnp(FlowId{0}, 0);
    control_->OnCnp(FlowId{0}, kPsPerUs);
  }

  ns3::Ptr<Dcqcn> control_;
};

TEST_F(DcqcnTest, AQueuePairIsWithoutLimitUntilItsFirstCnp) {
  EXPECT_EQ(control_->limits(FlowId{0}), SendLimits{});
  EXPECT_FALSE(state().is_limited);
}

TEST_F(DcqcnTest, TheFirstCnpHalvesTheLineRate) {
  control_->OnCnp(FlowId{0}, 0);
  EXPECT_EQ(state().target_bps, kLineBps);
  EXPECT_EQ(state().rate_bps, kLineBps / 2);
  EXPECT_EQ(state().alpha, 1.0);
  EXPECT_EQ(control_->limits(FlowId{0}).rate_bps, kLineBps / 2);
}

TEST_F(DcqcnTest, AlphaDecaysByOneMinusGEachTimer) {
  control_->OnCnp(FlowId{0}, 0);
  for (int k = 1; k <= 10; ++k) {
    Look(k * kTimerPs - 1);
    EXPECT_NEAR(state().alpha, std::pow(1 - kGain, k - 1), 1e-12);
    Look(k * kTimerPs);
    EXPECT_NEAR(state().alpha, std::pow(1 - kGain, k), 1e-12);
  }
}

TEST_F(DcqcnTest, ACnpCutsByHalfOfAlphaAndRaisesAlpha) {
  control_->OnCnp(FlowId{0}, 0);
  Look(5 * kTimerPs);
  const uint64_t rate_bps = state().rate_bps;
  const double alpha = std::pow(1 - kGain, 5);
  control_->OnCnp(FlowId{0}, 5 * kTimerPs + 1);
  EXPECT_EQ(state().target_bps, rate_bps);
  EXPECT_NEAR(static_cast<double>(state().rate_bps),
              static_cast<double>(rate_bps) * (1 - alpha / 2), 1);
  EXPECT_NEAR(state().alpha, (1 - kGain) * alpha + kGain, 1e-12);
}

TEST_F(DcqcnTest, FastRecoveryHalvesTheDistanceToTheTargetFiveTimes) {
  CutTwice();
  for (int i = 1; i <= 5; ++i) {
    Look(kPsPerUs + i * kTimerPs);
    EXPECT_EQ(state().target_bps, kLineBps / 2);
    const double left = static_cast<double>(kLineBps) / 4 / std::pow(2, i);
    EXPECT_NEAR(static_cast<double>(state().rate_bps), static_cast<double>(kLineBps) / 2 - left, i);
  }
}

TEST_F(DcqcnTest, AfterFastRecoveryEachTimerAddsToTheTarget) {
  CutTwice();
  Look(kPsPerUs + 5 * kTimerPs);
  for (uint64_t n = 1; n <= 100; ++n) {
    const uint64_t rate_bps = state().rate_bps;
    Look(kPsPerUs + static_cast<int64_t>(5 + n) * kTimerPs);
    EXPECT_EQ(state().target_bps, kLineBps / 2 + n * kAdditiveBps);
    EXPECT_EQ(state().rate_bps, (state().target_bps + rate_bps + 1) / 2);
  }
}

TEST_F(DcqcnTest, TheByteCounterIsAnIterationOfItsOwn) {
  CutTwice();
  control_->OnSend(FlowId{0}, kPsPerUs, kByteCounter - 1);
  EXPECT_EQ(state().rate_bps, kLineBps / 4);
  control_->OnSend(FlowId{0}, kPsPerUs, 1);
  EXPECT_EQ(state().rate_bps, kLineBps * 3 / 8);
  EXPECT_EQ(state().byte_iterations, 1u);
  EXPECT_EQ(state().timer_iterations, 0u);
}

TEST_F(DcqcnTest, WhenBothHaveHadMoreThanFiveTheIncreaseIsHyperAndGrows) {
  CutTwice();
  for (int i = 0; i < 6; ++i) control_->OnSend(FlowId{0}, kPsPerUs, kByteCounter);
  Look(kPsPerUs + 6 * kTimerPs);
  EXPECT_EQ(state().byte_iterations, 6u);
  EXPECT_EQ(state().timer_iterations, 6u);
  const uint64_t target_bps = state().target_bps;
  // Both are at 6: i = 1, also for the next, since the fewer of both counts; then 2.
  Look(kPsPerUs + 7 * kTimerPs);
  EXPECT_EQ(state().target_bps, target_bps + kHyperBps);
  control_->OnSend(FlowId{0}, kPsPerUs + 7 * kTimerPs, kByteCounter);
  EXPECT_EQ(state().target_bps, target_bps + 2 * kHyperBps);
  Look(kPsPerUs + 8 * kTimerPs);
  EXPECT_EQ(state().target_bps, target_bps + 4 * kHyperBps);
}

TEST_F(DcqcnTest, TheLargestIncreasesLeadToLineRate) {
  for (const char* increase : {"AdditiveIncreaseBps", "HyperIncreaseBps"}) {
    control_ = ns3::CreateObject<Dcqcn>();
    control_->SetAttribute(increase, ns3::UintegerValue(UINT64_MAX));
    control_->Open({.line_rate_bps = kLineBps,
                    .window_bytes = 1 << 20,
                    .mtu_bytes = 4'096,
                    .full_packet_wire_bytes = 4'178});
    control_->OnCnp(FlowId{0}, 0);
    control_->OnCnp(FlowId{0}, kPsPerUs);
    for (int k = 1; k <= 12; ++k)
      control_->OnSend(FlowId{0}, kPsPerUs + k * kTimerPs, kByteCounter);
    EXPECT_EQ(state().target_bps, kLineBps) << increase;
  }
}

TEST_F(DcqcnTest, ACnpStartsTimersAndByteCounterAnew) {
  CutTwice();
  Look(kPsPerUs + 3 * kTimerPs);
  control_->OnSend(FlowId{0}, kPsPerUs + 3 * kTimerPs, kByteCounter + 5);
  const int64_t cnp_ps = kPsPerUs + 3 * kTimerPs + kTimerPs / 2;
  control_->OnCnp(FlowId{0}, cnp_ps);
  EXPECT_EQ(state().timer_iterations, 0u);
  EXPECT_EQ(state().byte_iterations, 0u);
  EXPECT_EQ(state().counted_bytes, 0u);
  const uint64_t rate_bps = state().rate_bps;
  Look(cnp_ps + kTimerPs - 1);
  EXPECT_EQ(state().rate_bps, rate_bps);
  Look(cnp_ps + kTimerPs);
  EXPECT_GT(state().rate_bps, rate_bps);
}

TEST_F(DcqcnTest, TheRateFallsNoLowerThanItsLeast) {
  for (int i = 0; i < 100; ++i) control_->OnCnp(FlowId{0}, i);
  EXPECT_EQ(state().rate_bps, 100'000'000u);
}

TEST_F(DcqcnTest, AtLineRateTheLimiterIsGivenBackAndTheNextCnpIsAFirstOne) {
  control_->OnCnp(FlowId{0}, 0);
  // The target is the line rate: a full packet of 83,560 ps takes 1 ps longer as long as the rate
  // is more than 1.2e-5 below; half of the line rate over 2^16 is less.
  Look(15 * kTimerPs);
  EXPECT_TRUE(state().is_limited);
  Look(20 * kTimerPs);
  EXPECT_FALSE(state().is_limited);
  EXPECT_EQ(control_->limits(FlowId{0}), SendLimits{});
  control_->OnCnp(FlowId{0}, 30 * kTimerPs);
  EXPECT_EQ(state().rate_bps, kLineBps / 2);
  EXPECT_EQ(state().alpha, 1.0);
}

TEST_F(DcqcnTest, LookingOftenOrSeldomMakesNoDifference) {
  control_->Open({.line_rate_bps = kLineBps, .mtu_bytes = 4'096, .full_packet_wire_bytes = 4'178});
  const int64_t cnps_ps[] = {0, kPsPerUs, 300 * kPsPerUs, 370 * kPsPerUs, 2'000 * kPsPerUs};
  int64_t now_ps = 0;
  for (const int64_t cnp_ps : cnps_ps) {
    for (; now_ps < cnp_ps; now_ps += kPsPerUs) control_->OnSend(FlowId{1}, now_ps, 0);
    control_->OnCnp(FlowId{0}, cnp_ps);
    control_->OnCnp(FlowId{1}, cnp_ps);
    EXPECT_EQ(control_->state(FlowId{0}).rate_bps, control_->state(FlowId{1}).rate_bps);
    EXPECT_EQ(control_->state(FlowId{0}).target_bps, control_->state(FlowId{1}).target_bps);
    EXPECT_EQ(control_->state(FlowId{0}).alpha, control_->state(FlowId{1}).alpha);
  }
}

TEST_F(DcqcnTest, AttributesAreTheParameters) {
  control_->SetAttribute("AdditiveIncreaseBps", ns3::UintegerValue(1'000'000'000));
  control_->SetAttribute("FastRecoveryIterations", ns3::UintegerValue(1));
  CutTwice();
  Look(kPsPerUs + 2 * kTimerPs);
  EXPECT_EQ(state().target_bps, kLineBps / 2 + 1'000'000'000);
}

}  // namespace
}  // namespace railyard
