// SPDX-License-Identifier: GPL-2.0-only
// States, delays, holds and taps of links, each alone over tables made by hand.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/link/link_states.h"
#include "simulator/fabric/link/link_taps.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

// A packet of 1,000 B is on its way out of the port for 80,000 ps, and then for 1,000 ps on the
// wire.
class LinkStatesTest : public testing::TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    states_.ResetUp();
  }
  std::optional<DropReason> LossOf(int64_t departure_ps) {
    Packet packet;
    packet.link = from_left_;
    packet.wire_bytes = 1'000;
    packet.arrival_ps = departure_ps + kPropagationPs;
    return states_.LossOf(packet);
  }

  LinkStates states_{tables_};
};

TEST_F(LinkStatesTest, ALinkThatWasDownLosesWhatWasOnTheWireMeanwhile) {
  At(100'000, [&] { EXPECT_TRUE(states_.SetUp(from_left_, false)); });
  At(150'000, [&] {
    EXPECT_FALSE(states_.IsUp(from_left_));
    EXPECT_TRUE(states_.IsUp(to_left_));
    EXPECT_FALSE(states_.SetUp(from_left_, false)) << "it is down already";
    EXPECT_EQ(LossOf(98'999), std::nullopt) << "its last bit arrived 1 ps before";
    EXPECT_EQ(LossOf(99'000), DropReason::kLinkDown);
  });
  At(200'000, [&] { EXPECT_TRUE(states_.SetUp(from_left_, true)); });
  At(300'000, [&] {
    EXPECT_TRUE(states_.IsUp(from_left_));
    EXPECT_EQ(LossOf(279'999), DropReason::kLinkDown) << "its first bit left 1 ps before";
    EXPECT_EQ(LossOf(280'000), std::nullopt);
  });
  engine().Run();
  EXPECT_NE(tables_.links[from_left_].arrival_flags & LinkRecord::kMayLose, 0);
  EXPECT_EQ(tables_.links[to_left_].arrival_flags & LinkRecord::kMayLose, 0);
}

// The packet in service leaves from 200,000 to 280,000 ps, for it began at 100 Gb/s; at 50 Gb/s it
// would have begun at 120,000 ps. The next one leaves from then to 440,000 ps.
TEST_F(LinkStatesTest, APacketThatHasStartedKeepsItsRate) {
  At(100'000, [&] { states_.SetUp(from_left_, false); });
  At(150'000, [&] { states_.SetUp(from_left_, true); });
  At(240'000, [&] {
    tables_.links[from_left_].busy_until_ps = 280'000;
    states_.SetRate(from_left_, kRateBps / 2);
  });
  At(281'000, [&] { EXPECT_EQ(LossOf(280'000), std::nullopt); });
  At(285'000, [&] { states_.SetUp(from_left_, false); });
  At(300'000, [&] { states_.SetUp(from_left_, true); });
  At(500'000, [&] {
    EXPECT_EQ(LossOf(440'000), DropReason::kLinkDown);
    EXPECT_EQ(LossOf(460'000), std::nullopt) << "its first bit left as the link came back";
  });
  engine().Run();
  EXPECT_EQ(tables_.TransmissionPs(from_left_, 1'000), 160'000);
}

TEST_F(LinkStatesTest, AFilterLosesThePacketsThatItNames) {
  states_.SetLossFilter(from_left_,
                        [](const Packet& packet) { return packet.arrival_ps > 90'000; });
  EXPECT_EQ(LossOf(89'000), std::nullopt);
  EXPECT_EQ(LossOf(89'001), DropReason::kBitError);
  EXPECT_EQ(states_.DroppedPackets(from_left_), 0u) << "only what is counted";
  states_.CountDropped(from_left_);
  states_.CountRetransmitted(from_left_, 918);
  EXPECT_EQ(states_.DroppedPackets(from_left_), 1u);
  EXPECT_EQ(states_.RetransmittedBytes(from_left_), 918u);
  EXPECT_EQ(states_.DroppedPackets(to_left_), 0u);
}

TEST(DelayLine, PacketsStayInOrder) {
  DelayLine line;
  line.SetFilter([](const Packet& packet) { return int64_t{packet.tag}; });
  Packet packet;
  packet.tag = 100;
  const auto first = line.Take(PacketId{1}, packet, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->release_ps, 100);
  EXPECT_TRUE(first->is_first_of_instant);
  packet.tag = 50;
  const auto second = line.Take(PacketId{2}, packet, 10);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->release_ps, 100) << "not before the first";
  EXPECT_FALSE(second->is_first_of_instant);
  packet.tag = 0;
  EXPECT_TRUE(line.Take(PacketId{3}, packet, 20)) << "it would overtake";
  EXPECT_EQ(line.PopDue(99), std::nullopt);
  for (const uint32_t index : {1u, 2u, 3u}) EXPECT_EQ(line.PopDue(100), PacketId{index});
  EXPECT_EQ(line.PopDue(100), std::nullopt);
  EXPECT_FALSE(line.Take(PacketId{4}, packet, 100));
}

TEST(DelayLine, IsIdleWithoutFilterAndPackets) {
  DelayLine line;
  EXPECT_TRUE(line.is_idle());
  line.SetFilter([](const Packet&) { return int64_t{5}; });
  EXPECT_FALSE(line.is_idle());
  EXPECT_TRUE(line.Take(PacketId{1}, Packet{}, 0));
  line.SetFilter(nullptr);
  EXPECT_FALSE(line.is_idle());
  EXPECT_TRUE(line.Take(PacketId{2}, Packet{}, 3)) << "behind the one that is held";
  EXPECT_EQ(line.PopDue(5), PacketId{1});
  EXPECT_EQ(line.PopDue(5), PacketId{2});
  EXPECT_TRUE(line.is_idle());
}

TEST(LinkDelays, HaveALineForEachLinkThatEverDelayed) {
  LinkDelays delays;
  EXPECT_EQ(delays.Find(LinkId{7}), nullptr);
  const DelayLine* const line = &delays.LineOf(LinkId{7});
  for (LinkId link{100}; link < 200; ++link) delays.LineOf(link);
  EXPECT_EQ(delays.Find(LinkId{7}), line);
}

class LinkTapsTest : public testing::TablesFixture {
 protected:
  void Observe(LinkId link, std::optional<DropReason> loss = std::nullopt) {
    taps_.Observe(tables_.packets[MakePacket(link, 1'000)], loss);
  }

  LinkTaps taps_{tables_};
};

TEST_F(LinkTapsTest, EachTapOfALinkIsCalledUntilTheReset) {
  int arrived = 0;
  int lost = 0;
  taps_.Add(from_left_, [&](const Packet& packet, std::optional<DropReason> loss) {
    EXPECT_EQ(packet.link, from_left_);
    ++(loss ? lost : arrived);
  });
  taps_.Add(from_left_, [&](const Packet&, std::optional<DropReason>) { ++arrived; });
  EXPECT_NE(tables_.links[from_left_].arrival_flags & LinkRecord::kObserved, 0);
  EXPECT_EQ(tables_.links[to_left_].arrival_flags & LinkRecord::kObserved, 0);
  Observe(from_left_);
  Observe(from_left_, DropReason::kBitError);
  Observe(to_left_);
  EXPECT_EQ(arrived, 3);
  EXPECT_EQ(lost, 1);
  taps_.Reset();
  Observe(from_left_);
  EXPECT_EQ(arrived, 3);
}

TEST_F(LinkTapsTest, TheHashDependsOnTheOrderOfArrivals) {
  Observe(from_left_);
  EXPECT_EQ(taps_.trajectory_hash(), 0u) << "the settings do not require it";
  tables_.settings.hashes_trajectory = true;
  LinkTaps others(tables_);
  Observe(from_left_);
  Observe(from_right_);
  for (const LinkId link : {from_right_, from_left_}) {
    others.Observe(tables_.packets[MakePacket(link, 1'000)], std::nullopt);
  }
  EXPECT_NE(taps_.trajectory_hash(), 0u);
  EXPECT_NE(taps_.trajectory_hash(), others.trajectory_hash());
}

// Three switches in a ring.
class HoldMonitorTest : public testing::TablesFixture {
 protected:
  void AddDevices() override {
    std::vector<DeviceId> switches;
    for (int i = 0; i < 3; ++i) {
      switches.push_back(AddDevice("s" + std::to_string(i), DeviceKind::kSwitch, -1, -1));
    }
    for (size_t i = 0; i < 3; ++i) {
      ring_.push_back(AddCable(switches[i], switches[(i + 1) % 3], Tier::kLeafSpine));
    }
  }
  Port& Hold(LinkId link) {
    holds_.Begin(FirstChannelOf(link));
    Port& port = tables_.PortOf(link);
    port.paused_classes = Port::BitOf(0);
    return port;
  }
  // A packet that came by `ingress` waits for `egress`.
  void Wait(LinkId ingress, LinkId egress) { WaitFrom(FirstChannelOf(ingress), egress); }
  void WaitFrom(VirtualChannelId ingress, LinkId egress) {
    Port& port = tables_.PortOf(egress);
    port.waiting_classes = Port::BitOf(0);
    port.data[0].Append(tables_.packets, MakePacketFrom(ingress, egress, 1'000));
  }

  std::vector<LinkId> ring_;
  HoldMonitor holds_{tables_};
};

TEST_F(HoldMonitorTest, AHoldIsCheckedAfterTheThresholdAndReportedOnce) {
  tables_.settings.storm_threshold_ps = 1'000;
  EXPECT_EQ(holds_.Begin(FirstChannelOf(ring_[0])), 1'000);
  EXPECT_EQ(tables_.is_held[ring_[0]], 1);
  EXPECT_EQ(holds_.Begin(FirstChannelOf(ring_[0])), std::nullopt) << "its check is still to come";
  tables_.PortOf(ring_[0]).paused_classes = Port::BitOf(0);
  At(1'000, [&] { EXPECT_EQ(holds_.Check(FirstChannelOf(ring_[0])), std::nullopt); });
  engine().Run();
  ASSERT_EQ(holds_.reports().size(), 1u);
  EXPECT_EQ(holds_.reports()[0].time_ps, 1'000);
  EXPECT_EQ(holds_.reports()[0].link, ring_[0]);
  EXPECT_EQ(holds_.reports()[0].kind, HoldKind::kPauseStorm);
}

TEST_F(HoldMonitorTest, AHoldThatBeganAgainIsCheckedAgain) {
  tables_.settings.storm_threshold_ps = 1'000;
  holds_.Begin(FirstChannelOf(ring_[0]));
  tables_.PortOf(ring_[0]).paused_classes = Port::BitOf(0);
  At(400, [&] { EXPECT_EQ(holds_.Begin(FirstChannelOf(ring_[0])), std::nullopt); });
  At(1'000, [&] { EXPECT_EQ(holds_.Check(FirstChannelOf(ring_[0])), 1'400); });
  At(1'300, [&] { tables_.PortOf(ring_[0]).paused_classes = 0; });
  At(1'400, [&] { EXPECT_EQ(holds_.Check(FirstChannelOf(ring_[0])), std::nullopt); });
  engine().Run();
  EXPECT_TRUE(holds_.reports().empty()) << "it was over by then";
}

TEST_F(HoldMonitorTest, HoldsThatWaitForEachOtherAreADeadlock) {
  for (const LinkId link : ring_) Hold(link);
  for (size_t i = 0; i < 3; ++i) Wait(ring_[i], ring_[(i + 1) % 3]);
  EXPECT_EQ(holds_.FindCycle(FirstChannelOf(ring_[1])),
            (std::vector<VirtualChannelId>{FirstChannelOf(ring_[1]), FirstChannelOf(ring_[2]),
                                           FirstChannelOf(ring_[0])}));
  At(tables_.settings.storm_threshold_ps, [&] { holds_.Check(FirstChannelOf(ring_[1])); });
  engine().Run();
  ASSERT_EQ(holds_.reports().size(), 1u);
  EXPECT_EQ(holds_.reports()[0].kind, HoldKind::kBufferDeadlock);
  EXPECT_EQ(holds_.reports()[0].cycle, (std::vector<std::string>{"s1>s2", "s2>s0", "s0>s1"}));
}

TEST_F(HoldMonitorTest, AHeldLinkThatCarriesNothingOfTheOthersClosesNoCycle) {
  for (const LinkId link : ring_) Hold(link);
  Wait(ring_[0], ring_[1]);
  Wait(ring_[1], ring_[2]);
  WaitFrom(VirtualChannelId::kNone, ring_[0]);  // sent by the switch's own port, not by ring_[2]
  EXPECT_TRUE(holds_.FindCycle(FirstChannelOf(ring_[0])).empty());
}

}  // namespace
}  // namespace railyard
