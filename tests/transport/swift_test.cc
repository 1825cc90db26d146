// SPDX-License-Identifier: GPL-2.0-only
// Swift against section 3 and algorithm 1 of its paper (Kumar et al., SIGCOMM 2020).
#include "simulator/transport/congestion/swift.h"

#include <cmath>

#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr double kUs = kPsPerUs;

class SwiftTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = ns3::CreateObject<Swift>();
    control_->Open({.line_rate_bps = 400'000'000'000,
                    .window_bytes = uint64_t{200} * 4'096,
                    .mtu_bytes = 4'096,
                    .full_packet_wire_bytes = 4'178,
                    .base_rtt_ps = 8 * kPsPerUs,
                    .hop_count = 4});
  }
  double window() const { return control_->state(FlowId{0}).window_packets; }
  void Acknowledge(double rtt_us, uint32_t packets) {
    now_ps_ += 1'000 * kPsPerUs;  // another round trip
    control_->OnAcknowledged(FlowId{0}, {.now_ps = now_ps_,
                                         .rtt_ps = static_cast<int64_t>(rtt_us * kUs),
                                         .acknowledged_packets = packets});
  }

  ns3::Ptr<Swift> control_;
  int64_t now_ps_ = 0;
};

TEST_F(SwiftTest, TheTargetIsBasePlusHopsPlusFlowScaling) {
  // At 200 packets nothing is added, from 100 on.
  EXPECT_NEAR(control_->TargetPs(FlowId{0}), (15 + 4) * kUs, 1);
  while (window() > 25) Acknowledge(1'000, 1);
  const double inverse_max = 1 / std::sqrt(100.0);
  const double scaling =
      15 * (1 / std::sqrt(window()) - inverse_max) / (1 / std::sqrt(0.1) - inverse_max);
  EXPECT_NEAR(control_->TargetPs(FlowId{0}), (19 + scaling) * kUs, 1);
  // All of the range at 0.1.
  while (window() > 0.1) Acknowledge(100'000, 1);
  EXPECT_NEAR(control_->TargetPs(FlowId{0}), (19 + 15) * kUs, 1);
}

TEST_F(SwiftTest, AboveTheTargetTheWindowShrinksInProportionToTheExcess) {
  Acknowledge(25, 1);
  EXPECT_NEAR(window(), 200 * (1 - 0.8 * (25.0 - 19) / 25), 1e-9);
}

TEST_F(SwiftTest, NeverByMoreThanHalfAtOnce) {
  Acknowledge(1'000, 1);
  EXPECT_NEAR(window(), 100, 1e-9);
}

TEST_F(SwiftTest, OnlyOncePerRoundTrip) {
  now_ps_ = 1'000 * kPsPerUs;
  const AckInfo late{.now_ps = now_ps_, .rtt_ps = 40 * kPsPerUs, .acknowledged_packets = 1};
  control_->OnAcknowledged(FlowId{0}, late);
  const double once = window();
  AckInfo next = late;
  next.now_ps += 40 * kPsPerUs - 1;
  control_->OnAcknowledged(FlowId{0}, next);
  EXPECT_EQ(window(), once);
  next.now_ps += 1;
  control_->OnAcknowledged(FlowId{0}, next);
  EXPECT_LT(window(), once);
}

TEST_F(SwiftTest, BelowTheTargetAWindowAcknowledgedAddsOnePacket) {
  Acknowledge(1'000, 1);
  double expected = window();
  for (int ack = 0; ack < 25; ++ack) {
    Acknowledge(10, 4);
    expected += 4 / expected;
    EXPECT_NEAR(window(), expected, 1e-9);
  }
  EXPECT_NEAR(window(), 101, 0.02);
}

TEST_F(SwiftTest, AWindowBelowOnePacketIsAPacketInAsManyRoundTrips) {
  while (window() > 0.25) Acknowledge(1'000, 1);
  EXPECT_EQ(control_->limits(FlowId{0}).window_bytes, 4'096u);
  EXPECT_NEAR(static_cast<double>(control_->limits(FlowId{0}).rate_bps),
              4'178 * 8 * window() / (1'000 * 1e-6), 1);
  const double before = window();
  Acknowledge(10, 1);
  EXPECT_NEAR(window(), before + 1, 1e-9);
}

TEST_F(SwiftTest, ALossShrinksTheWindowByTheMostOncePerRoundTrip) {
  control_->OnNack(FlowId{0}, 100 * kPsPerUs);
  EXPECT_NEAR(window(), 100, 1e-9);
  control_->OnTimeout(FlowId{0}, 101 * kPsPerUs);
  EXPECT_NEAR(window(), 100, 1e-9);
  control_->OnTimeout(FlowId{0}, 200 * kPsPerUs);
  EXPECT_NEAR(window(), 50, 1e-9);
}

}  // namespace
}  // namespace railyard
