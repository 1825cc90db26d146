// SPDX-License-Identifier: GPL-2.0-only
// HPCC against algorithm 1 of its paper (Li et al., SIGCOMM 2019).
#include "simulator/transport/congestion/hpcc.h"

#include <vector>

#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

// 80 Gb/s: a byte takes 100 ps. T = 10 us: 100,000 B.
constexpr uint64_t kRateBps = 80'000'000'000;
constexpr int64_t kBasePs = 10 * kPsPerUs;
constexpr double kFull = 100'000;
constexpr double kEta = 0.95;
constexpr double kAdditive = 80;

class HpccTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = ns3::CreateObject<Hpcc>();
    control_->Open({.line_rate_bps = kRateBps,
                    .window_bytes = 1'000'000,
                    .mtu_bytes = 4'096,
                    .full_packet_wire_bytes = 4'178,
                    .base_rtt_ps = kBasePs});
  }
  const Hpcc::State& state() const { return control_->state(FlowId{0}); }
  // A report of one link at `elapsed` after the last, `sent` bytes later, with a backlog; each ACK
  // is for one round trip more if `is_new_round`.
  void Report(int64_t elapsed_ps, uint64_t sent_bytes, uint64_t backlog_bytes,
              bool is_new_round = true) {
    hop_.time_ps += elapsed_ps;
    hop_.sent_bytes += sent_bytes;
    hop_.backlog_bytes = backlog_bytes;
    hop_.rate_bps = kRateBps;
    if (is_new_round) sequence_ += 100;
    control_->OnAcknowledged(
        FlowId{0},
        {.expected_sequence = sequence_, .next_sequence = sequence_ + 50, .telemetry = {&hop_, 1}});
  }

  ns3::Ptr<Hpcc> control_;
  HopTelemetry hop_;
  uint32_t sequence_ = 0;
};

TEST_F(HpccTest, StartsWithOneBandwidthDelayProductAndNoRateLimit) {
  EXPECT_EQ(control_->limits(FlowId{0}).window_bytes,
            24u * 4'096);  // packets begun before 100,000 B
  EXPECT_EQ(control_->limits(FlowId{0}).rate_bps, SendLimits::kNoLimit);
  EXPECT_TRUE(control_->needs().telemetry);
}

TEST_F(HpccTest, UtilizationIsQueueOverBandwidthDelayProductPlusRateOverBandwidth) {
  Report(0, 0, 50'000);
  // Half of T later: 50,000 B sent, all the port can; the smaller backlog counts: 0.3 + 1.
  Report(kBasePs / 2, 50'000, 30'000);
  EXPECT_NEAR(state().utilization, 0.5 * 1.3, 1e-9);
  // A whole T later: what was before is forgotten. 0.2 + 0.6.
  Report(kBasePs, 60'000, 20'000);
  EXPECT_NEAR(state().utilization, 0.8, 1e-9);
  // Longer than T counts as T.
  Report(4 * kBasePs, 200'000, 40'000);
  EXPECT_NEAR(state().utilization, 0.2 + 0.5, 1e-9);
}

// Backlogs are rounded down, so the later of two may have grown by more bytes than have joined.
TEST_F(HpccTest, CountersThatGoBackByAByteAreNoTraffic) {
  Report(0, 1'000, 50'000);
  Report(kBasePs, UINT64_MAX, 50'000);  // one less
  EXPECT_NEAR(state().utilization, 0.5, 1e-9);
}

TEST_F(HpccTest, AboveEtaTheWindowShrinksByTheExcess) {
  Report(0, 0, 50'000);
  Report(kBasePs, 100'000, 50'000);
  EXPECT_NEAR(state().utilization, 1.5, 1e-9);
  const double window = kFull / (1.5 / kEta) + kAdditive;
  EXPECT_NEAR(state().window_bytes, window, 1e-6);
  EXPECT_EQ(control_->limits(FlowId{0}).window_bytes,
            16u * 4'096);  // of 4,178 B: 15.2 in the window
  // R = W / T.
  EXPECT_NEAR(static_cast<double>(control_->limits(FlowId{0}).rate_bps), window / kFull * 80e9, 1);
}

TEST_F(HpccTest, WithinOneRoundTripTheReferenceStays) {
  Report(0, 0, 50'000);
  Report(kBasePs, 100'000, 50'000);
  const double reference = state().reference_bytes;
  Report(kBasePs, 100'000, 100'000, false);
  Report(kBasePs, 100'000, 100'000, false);
  EXPECT_EQ(state().reference_bytes, reference);
  EXPECT_NEAR(state().window_bytes, reference / (2.0 / kEta) + kAdditive, 1e-6);
}

TEST_F(HpccTest, BelowEtaTheWindowGrowsByAdditionFiveTimesThenByProportion) {
  Report(0, 0, 100'000);
  Report(kBasePs, 100'000, 100'000);
  double window = kFull / (2.0 / kEta) + kAdditive;
  EXPECT_NEAR(state().window_bytes, window, 1e-6);
  for (int stage = 0; stage < 5; ++stage) {
    Report(kBasePs, 80'000, 0);
    window += kAdditive;
    EXPECT_NEAR(state().window_bytes, window, 1e-6);
  }
  Report(kBasePs, 80'000, 0);
  window = window / (0.8 / kEta) + kAdditive;
  EXPECT_NEAR(state().window_bytes, window, 1e-6);
}

TEST_F(HpccTest, TheMostUsedLinkCounts) {
  std::vector<HopTelemetry> hops = {{0, 0, 0, kRateBps}, {0, 0, 0, 2 * kRateBps}};
  control_->OnAcknowledged(FlowId{0},
                           {.expected_sequence = 1, .next_sequence = 2, .telemetry = hops});
  hops = {{kBasePs, 60'000, 0, kRateBps}, {kBasePs, 140'000, 20'000, 2 * kRateBps}};
  control_->OnAcknowledged(FlowId{0},
                           {.expected_sequence = 3, .next_sequence = 4, .telemetry = hops});
  EXPECT_NEAR(state().utilization, 0.7, 1e-9);
}

// After a change of path the counters of another port have no relation to those of the last report.
TEST_F(HpccTest, AnotherPortIsNotCompared) {
  std::vector<HopTelemetry> hops = {{0, 0, 0, kRateBps, LinkId{1}},
                                    {0, 900'000'000, 0, kRateBps, LinkId{2}}};
  control_->OnAcknowledged(FlowId{0},
                           {.expected_sequence = 1, .next_sequence = 2, .telemetry = hops});
  hops = {{kBasePs, 60'000, 0, kRateBps, LinkId{1}}, {kBasePs, 0, 0, kRateBps, LinkId{3}}};
  control_->OnAcknowledged(FlowId{0},
                           {.expected_sequence = 3, .next_sequence = 4, .telemetry = hops});
  EXPECT_NEAR(state().utilization, 0.6, 1e-9);
}

}  // namespace
}  // namespace railyard
