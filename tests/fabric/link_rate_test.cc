// SPDX-License-Identifier: GPL-2.0-only
// A link that slows down, and what packets collect on their way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/star_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

class LinkRateTest : public testing::StarFixture {
 protected:
  void OnPacketAtNic(PacketId index) override {
    for (const HopTelemetry& hop : network().telemetry().Of(index)) hops_.push_back(hop);
    StarFixture::OnPacketAtNic(index);
  }
  // Two NICs and one cable.
  PathRef BuildCable(int64_t propagation_ps) {
    const DeviceId from = AddInServer(DeviceKind::kNic, 0, 0);
    const DeviceId to = AddInServer(DeviceKind::kNic, 1, 0);
    graph_.AddCable(from, to, {Tier::kDirect, kRate, propagation_ps, 1});
    link_ = *graph_.FindLink(from, to);
    BuildNetwork();
    return network().AddPath({link_});
  }
  LinkId link_{0};
  std::vector<HopTelemetry> hops_;
};

TEST_F(LinkRateTest, WhatHasBegunKeepsItsRateAndTheRestTakesTheNew) {
  const PathRef hop = BuildCable(1'000);
  InjectMany(hop, {.count = 4, .wire_bytes = 1'000});
  // 1 is being sent from 20 to 40 ns; then 80 ns each, until 200 ns.
  At(30'000, [this] {
    network().SetLinkRate(link_, 100'000'000'000);
    EXPECT_EQ(network().BacklogPs(link_), 10'000 + 2 * 80'000);
    EXPECT_EQ(network().RateBps(link_), 100'000'000'000u);
  });
  At(300'000, [this] { network().SetLinkRate(link_, kRate); });
  At(400'000, [&] { InjectMany(hop, {.count = 1, .wire_bytes = 1'000}); });
  engine().Run();
  EXPECT_THAT(at_nic_,
              ElementsAre(Arrived{21'000, 0, 0}, Arrived{41'000, 0, 1}, Arrived{121'000, 0, 2},
                          Arrived{201'000, 0, 3}, Arrived{421'000, 0, 0}));
  network().CheckConservation();
}

// Sent over 20 ns at the old rate, or 80 at the new: what a fault hits is what was on the wire.
TEST_F(LinkRateTest, LossesGoByTheRateAPacketWasSentAt) {
  const PathRef hop = BuildCable(0);
  InjectMany(hop, {.count = 3, .wire_bytes = 1'000});
  At(10'000, [this] { network().SetLinkRate(link_, 100'000'000'000); });
  // 0 is sent over [0, 20), 1 over [20, 100), 2 over [100, 180) ns.
  Down(link_, 0, 1);
  Down(link_, 20'000, 20'001);
  Down(link_, 99'999, 100'000);
  engine().Run();
  std::vector<uint32_t> lost;
  for (const auto& drop : dropped_) lost.push_back(drop.sequence);
  EXPECT_THAT(lost, ElementsAre(0, 1));
}

TEST_F(LinkRateTest, PacketsCollectThePortsStateAsTheyJoinItsQueue) {
  AddNic();
  AddNic(200'000'000'000);
  BuildStar({.ecn_enabled = false});
  network().telemetry().Enable();
  InjectMany(PathTo(0, 1), {.count = 3, .wire_bytes = 1'000});
  engine().Run();
  // They join at 21, 41 and 61 ns; the port sends one over 40 ns from 21 ns on.
  ASSERT_EQ(hops_.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(hops_[i].time_ps, 21'000 + 20'000 * i);
    EXPECT_EQ(hops_[i].rate_bps, 200'000'000'000u);
    EXPECT_EQ(hops_[i].backlog_bytes, 500u * i);
    EXPECT_EQ(hops_[i].sent_bytes, 500u * i);
  }
}

TEST_F(LinkRateTest, TelemetryCanBeCopiedToTheAnswer) {
  AddNic();
  AddNic();
  BuildStar({});
  const PacketId packet = network().AllocatePacket();
  EXPECT_TRUE(network().telemetry().Of(packet).empty());
  network().telemetry().Copy(packet, packet);  // without effect until it is enabled
  network().FreePacket(packet);
  network().telemetry().Enable();
  InjectMany(PathTo(0, 1), {.count = 1, .wire_bytes = 1'000});
  engine().Run();
  const PacketId from = network().AllocatePacket();
  const PacketId to = network().AllocatePacket();
  network().telemetry().Copy(from, to);
  EXPECT_EQ(network().telemetry().Of(to).size(), network().telemetry().Of(from).size());
  network().FreePacket(from);
  network().FreePacket(to);
}

}  // namespace
}  // namespace railyard
