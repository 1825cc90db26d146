// SPDX-License-Identifier: GPL-2.0-only
// Shares of lost packets against what the models' formulas say, within four standard errors.
#include "simulator/faults/packet_loss.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr uint64_t kPackets = 400'000;

Packet PacketOf(PacketKind kind, uint16_t wire_bytes = 4178) {
  Packet packet;
  packet.kind = kind;
  packet.wire_bytes = wire_bytes;
  return packet;
}

std::vector<bool> LossesOf(const LossSpec& spec, uint64_t seed, uint16_t wire_bytes = 4178) {
  PacketLoss loss(spec, seed);
  const Packet packet = PacketOf(PacketKind::kNetworkData, wire_bytes);
  std::vector<bool> losses;
  for (uint64_t i = 0; i < kPackets; ++i) losses.push_back(loss.Loses(packet));
  return losses;
}

double ShareOf(const std::vector<bool>& losses) {
  uint64_t lost = 0;
  for (const bool is_lost : losses) lost += is_lost;
  return static_cast<double>(lost) / static_cast<double>(losses.size());
}

double StandardError(double share) { return std::sqrt(share * (1 - share) / kPackets); }

TEST(PacketLossTest, EveryPacketIsLostWithTheProbability) {
  LossSpec spec;
  spec.probability = 0.01;
  EXPECT_NEAR(ShareOf(LossesOf(spec, 1)), 0.01, 4 * StandardError(0.01));
  EXPECT_EQ(LossesOf(spec, 1), LossesOf(spec, 1));
  EXPECT_NE(LossesOf(spec, 1), LossesOf(spec, 2));
  spec.probability = 0;
  EXPECT_EQ(ShareOf(LossesOf(spec, 1)), 0);
  spec.probability = 1;
  EXPECT_EQ(ShareOf(LossesOf(spec, 1)), 1);
}

// 1 - (1 - b)^(8 x bytes).
TEST(PacketLossTest, BitErrorsHitLongPacketsMoreOften) {
  LossSpec spec;
  spec.model = LossSpec::Model::kBitErrors;
  spec.bit_error_ratio = 1e-6;
  for (const uint16_t bytes : {uint16_t{64}, uint16_t{4178}}) {
    const double expected = 1 - std::pow(1 - 1e-6, 8.0 * bytes);
    EXPECT_NEAR(ShareOf(LossesOf(spec, 5, bytes)), expected, 4 * StandardError(expected));
  }
}

// The chain is in its bad state for the share to_bad / (to_bad + to_good) of packets; states of
// neighbours agree, which widens the error by (1 + r) / (1 - r) with r = 1 - to_bad - to_good.
TEST(PacketLossTest, GilbertElliottLosesItsStationaryShareInBursts) {
  LossSpec spec;
  spec.model = LossSpec::Model::kGilbertElliott;
  spec.to_bad = 0.002;
  spec.to_good = 0.1;
  const std::vector<bool> losses = LossesOf(spec, 9);
  const double expected = spec.to_bad / (spec.to_bad + spec.to_good);
  const double r = 1 - spec.to_bad - spec.to_good;
  EXPECT_NEAR(ShareOf(losses), expected,
              4 * StandardError(expected) * std::sqrt((1 + r) / (1 - r)));
  // Bursts last 1 / to_good packets on average.
  uint64_t bursts = 0;
  for (size_t i = 1; i < losses.size(); ++i) bursts += losses[i] && !losses[i - 1];
  const double length = ShareOf(losses) * kPackets / static_cast<double>(bursts);
  EXPECT_NEAR(length, 10, 4 * 10 / std::sqrt(static_cast<double>(bursts)));
}

TEST(PacketLossTest, GilbertElliottLosesInBothStatesWhereItIsConfiguredTo) {
  LossSpec spec;
  spec.model = LossSpec::Model::kGilbertElliott;
  spec.to_bad = 0.3;
  spec.to_good = 0.7;
  spec.loss_in_good = 0.01;
  spec.loss_in_bad = 0.5;
  const double expected = 0.7 * 0.01 + 0.3 * 0.5;
  EXPECT_NEAR(ShareOf(LossesOf(spec, 2)), expected, 4 * StandardError(expected));
}

TEST(PacketLossTest, OfAKindExactlyTheNumberedOnesAreLost) {
  LossSpec spec;
  spec.model = LossSpec::Model::kNumbered;
  spec.kind = PacketKind::kAck;
  spec.first_number = 2;
  spec.count = 2;
  PacketLoss loss(spec, 1);
  EXPECT_FALSE(loss.Loses(PacketOf(PacketKind::kAck)));
  EXPECT_FALSE(loss.Loses(PacketOf(PacketKind::kNetworkData)));
  EXPECT_TRUE(loss.Loses(PacketOf(PacketKind::kAck)));
  EXPECT_FALSE(loss.Loses(PacketOf(PacketKind::kNetworkData)));
  EXPECT_TRUE(loss.Loses(PacketOf(PacketKind::kAck)));
  EXPECT_FALSE(loss.Loses(PacketOf(PacketKind::kAck)));
}

}  // namespace
}  // namespace railyard
