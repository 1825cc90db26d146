// SPDX-License-Identifier: GPL-2.0-only
// Links that hold packets back, and devices that send pause frames all the time.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/fabric/fabric_network.h"
#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// nic0 - leaf - nic1 at 400 Gb/s and 1 ns. A packet of 1,000 B takes 20 ns to send.
constexpr int64_t kSendPs = 20'000;
constexpr int64_t kPathPs = 2 * (kSendPs + 1'000);

class LinkDelayTest : public testing::NetworkFixture {
 protected:
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf");
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
    }
    BuildNetwork();
    first_ = Link("server0/nic0", "leaf");
    second_ = Link("leaf", "server1/nic0");
    path_ = network().AddPath({first_, second_});
  }
  // When packets 0, 1, … arrived, all injected at 0.
  std::vector<int64_t> ArrivalsOf(uint32_t packets) {
    At(0, [this, packets] {
      for (uint32_t i = 0; i < packets; ++i) Inject(path_, i, 1'000);
    });
    engine().Run();
    network().CheckConservation();
    std::vector<int64_t> times_ps;
    for (const Arrived& arrived : at_nic_) times_ps.push_back(arrived.time_ps);
    return times_ps;
  }

  LinkId first_{0};
  LinkId second_{0};
  PathRef path_;
};

TEST_F(LinkDelayTest, EveryPacketComesLaterByTheDelay) {
  network().SetDelayFilter(first_, [](const Packet&) { return 7'000; });
  EXPECT_THAT(ArrivalsOf(3), ElementsAre(kPathPs + 7'000, kPathPs + kSendPs + 7'000,
                                         kPathPs + 2 * kSendPs + 7'000));
}

// The first is held for three packets' time: the second and third come right behind it, no faster
// than the next wire takes them, and the fourth is not held at all.
TEST_F(LinkDelayTest, NoPacketOvertakesAnother) {
  network().SetDelayFilter(
      first_, [](const Packet& packet) { return packet.sequence == 0 ? 2 * kSendPs : 0; });
  EXPECT_THAT(ArrivalsOf(4), ElementsAre(kPathPs + 2 * kSendPs, kPathPs + 3 * kSendPs,
                                         kPathPs + 4 * kSendPs, kPathPs + 5 * kSendPs));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(at_nic_[i].sequence, i);
}

TEST_F(LinkDelayTest, WhatIsHeldCountsAsUnderWayOnTheLink) {
  network().SetDelayFilter(first_, [](const Packet&) { return 1'000'000; });
  At(500'000, [this] {
    network().CheckConservation();
    EXPECT_EQ(network().live_packets(), 2u);
    EXPECT_EQ(network().CountersOfLink(first_).packets, 0u);
  });
  ArrivalsOf(2);
  EXPECT_EQ(network().CountersOfLink(first_).packets, 2u);
}

TEST_F(LinkDelayTest, ALinkWithoutItsDelayIsAsItWas) {
  network().SetDelayFilter(first_, [](const Packet&) { return 1'000'000; });
  network().SetDelayFilter(first_, {});
  EXPECT_THAT(ArrivalsOf(1), ElementsAre(kPathPs));
}

// The packet in service goes on; the next starts when the storm is over.
TEST_F(LinkDelayTest, AStormStopsALinkUntilItIsOver) {
  constexpr int64_t kStormPs = 30'000;
  constexpr int64_t kOverPs = 5'000'000;
  At(kStormPs, [this] { network().SetPauseStorm(second_, true); });
  At(kOverPs, [this] { network().SetPauseStorm(second_, false); });
  EXPECT_THAT(ArrivalsOf(3),
              ElementsAre(kPathPs, kOverPs + kSendPs + 1'000, kOverPs + 2 * kSendPs + 1'000));
  EXPECT_EQ(network().CountersOfLink(second_).paused_ps, kOverPs - kStormPs);
  EXPECT_EQ(network().counters().xoff_frames, 0u);
}

TEST_F(LinkDelayTest, AStormWithoutEndHoldsForEver) {
  At(0, [this] { network().SetPauseStorm(second_, true); });
  EXPECT_THAT(ArrivalsOf(3), IsEmpty());
  EXPECT_TRUE(network().IsHeld(second_));
}

}  // namespace
}  // namespace railyard
