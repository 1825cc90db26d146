// SPDX-License-Identifier: GPL-2.0-only
// DCTCP against RFC 8257, section 3.3.
#include "simulator/transport/congestion/dctcp.h"

#include <cmath>

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr double kWindow = 1'000'000;
constexpr double kMtu = 1'000;

class DctcpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = ns3::CreateObject<Dctcp>();
    control_->Open({.window_bytes = 1'000'000, .mtu_bytes = 1'000});
    // The first ACK begins an observation window of the ten packets sent by then.
    Acknowledge(1, 0);
  }
  const Dctcp::State& state() const { return control_->state(FlowId{0}); }
  // One ACK for `packets`, `marked` of them; ten more are always in flight.
  void Acknowledge(uint32_t packets, uint32_t marked) {
    acknowledged_ += packets;
    control_->OnAcknowledged(FlowId{0}, {.acknowledged_packets = packets,
                                         .marked_packets = marked,
                                         .expected_sequence = acknowledged_,
                                         .next_sequence = acknowledged_ + 10});
  }

  ns3::Ptr<Dctcp> control_;
  uint32_t acknowledged_ = 0;
};

TEST_F(DctcpTest, AlphaIsTheMovingMeanOfTheMarkedShareAndCutsTheWindowOnce) {
  // The first, unmarked, observation ended with the first ACK.
  double alpha = 1 - 1.0 / 16;
  double window = kWindow;
  EXPECT_NEAR(state().alpha, alpha, 1e-12);
  for (int round = 0; round < 20; ++round) {
    Acknowledge(4, 3);
    Acknowledge(6, 0);
    EXPECT_NEAR(state().alpha, alpha, 1e-12);
    Acknowledge(2, 0);  // beyond the ten
    alpha = alpha * 15 / 16 + 3.0 / 12 / 16;
    window = std::max(kMtu, window * (1 - alpha / 2));
    EXPECT_NEAR(state().alpha, alpha, 1e-12);
    EXPECT_NEAR(state().window_bytes, window, 1e-6);
    EXPECT_EQ(control_->limits(FlowId{0}).window_bytes,
              static_cast<uint64_t>(state().window_bytes));
  }
  EXPECT_EQ(control_->limits(FlowId{0}).rate_bps, SendLimits::kNoLimit);
}

TEST_F(DctcpTest, WithEveryPacketMarkedTheWindowHalves) {
  for (int round = 0; round < 400; ++round) Acknowledge(11, 11);
  EXPECT_NEAR(state().alpha, 1, 1e-9);
  EXPECT_EQ(state().window_bytes, kMtu);
}

TEST_F(DctcpTest, WithoutMarksTheWindowGrowsByOnePacketPerRound) {
  control_->OnNack(FlowId{0}, 0);
  EXPECT_EQ(state().window_bytes, kWindow / 2);
  Acknowledge(11, 0);  // the round of the loss
  for (int round = 1; round <= 50; ++round) {
    Acknowledge(11, 0);
    EXPECT_EQ(state().window_bytes, kWindow / 2 + round * kMtu);
  }
  for (int round = 0; round < 1'000; ++round) Acknowledge(11, 0);
  EXPECT_EQ(state().window_bytes, kWindow);
}

TEST_F(DctcpTest, LossesOfOneRoundHalveTheWindowOnce) {
  control_->OnNack(FlowId{0}, 0);
  control_->OnTimeout(FlowId{0}, 0);
  EXPECT_EQ(state().window_bytes, kWindow / 2);
  Acknowledge(11, 0);
  control_->OnTimeout(FlowId{0}, 0);
  EXPECT_EQ(state().window_bytes, kWindow / 4);
}

}  // namespace
}  // namespace railyard
