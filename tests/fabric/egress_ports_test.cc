// SPDX-License-Identifier: GPL-2.0-only
// Ports and pause frames over tables made by hand: 1,000 B take 80,000 ps, 64 B take 5,120 ps.
#include "simulator/fabric/port/egress_ports.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/event_order/event_order.h"
#include "simulator/fabric/buffer/pause_frames.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

class EgressPortsTest : public testing::TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    buffers_.Reset();
    engine().Register(event_order::kArrival, {.name = "arrivals"}, &EgressPortsTest::HandleArrival,
                      this);
    engine().Register(event_order::kDeparture, {.name = "departures"},
                      &EgressPortsTest::HandleDeparture, this);
    engine().Register(
        event_order::kHoldCheck, {.name = "hold checks", .pending = PendingMeans::kNothing},
        [](void* /*self*/, uint32_t /*channel*/) {}, this);
  }
  static void HandleArrival(void* self, uint32_t target) {
    const PacketId index{target};
    auto& test = *static_cast<EgressPortsTest*>(self);
    Packet& packet = test.tables_.packets[index];
    if ((packet.flags & Packet::kTombstone) != 0) {
      test.tables_.packets.FreeTombstone(index);
      return;
    }
    --test.tables_.links[packet.link].timed;
    test.arrived_.emplace_back(packet.sequence, engine().NowPs());
  }
  static void HandleDeparture(void* self, uint32_t target) {
    const LinkId link{target};
    auto& test = *static_cast<EgressPortsTest*>(self);
    test.ports_.FinishService(link);
    test.ports_.Resume(link);
  }
  void Send(uint32_t sequence, uint32_t wire_bytes, PacketKind kind = PacketKind::kNetworkData) {
    const PacketId index = MakePacket(from_left_, wire_bytes, kind);
    tables_.packets[index].sequence = sequence;
    ports_.Send(index);
  }
  void LimitCredit(uint32_t bytes) {
    accounts_[FirstChannelOf(from_left_)].has_credits = 1;
    accounts_[FirstChannelOf(from_left_)].set_buffer_or_limit(bytes);
    tables_.links[from_left_].send_flags |= LinkRecord::kNeedsCredit;
  }

  using Arrivals = std::vector<std::pair<uint32_t, int64_t>>;  // sequence and time
  SharedBuffers buffers_{tables_, accounts_};
  TelemetryTable telemetry_{tables_};
  HoldMonitor holds_{tables_};
  EgressPorts ports_{tables_, accounts_, buffers_, holds_, telemetry_};
  Arrivals arrived_;
};

TEST_F(EgressPortsTest, DataLeavesInOrderWithOneEventEach) {
  Send(1, 1'000);
  Send(2, 1'000);
  EXPECT_TRUE(tables_.IsShort(from_left_));
  EXPECT_EQ(tables_.BacklogPs(from_left_), 160'000);
  engine().Run();
  EXPECT_EQ(arrived_, (Arrivals{{1, 81'000}, {2, 161'000}}));
  EXPECT_EQ(tables_.counters.general_hops, 0u);
}

TEST_F(EgressPortsTest, ControlOvertakesDataThatHasNotStarted) {
  Send(1, 1'000);
  Send(2, 1'000);
  Send(3, 64, PacketKind::kCnp);
  EXPECT_FALSE(tables_.IsShort(from_left_));
  EXPECT_EQ(tables_.BacklogPs(from_left_), 165'120);
  engine().Run();
  EXPECT_EQ(arrived_, (Arrivals{{1, 81'000}, {3, 86'120}, {2, 166'120}}));
  EXPECT_TRUE(tables_.IsShort(from_left_)) << "nothing holds it up";
}

TEST_F(EgressPortsTest, APausedPortFinishesThePacketInServiceAndWaits) {
  Send(1, 1'000);
  Send(2, 1'000);
  At(10'000, [&] {
    EXPECT_FALSE(ports_.Obey({.channel = FirstChannelOf(from_left_), .xoff = true}));
    EXPECT_TRUE(ports_.IsPaused(from_left_));
    EXPECT_EQ(tables_.is_held[from_left_], 1);
  });
  At(200'000, [&] {
    EXPECT_EQ(ports_.OpenPausePs(tables_.PortOf(from_left_)), 190'000);
    EXPECT_TRUE(ports_.Obey({.channel = FirstChannelOf(from_left_), .xoff = false}))
        << "a NIC's link is released";
  });
  engine().Run();
  EXPECT_EQ(arrived_, (Arrivals{{1, 81'000}, {2, 281'000}}));
  EXPECT_EQ(tables_.counters.pfc_pause_ps, 190'000);
  EXPECT_EQ(ports_.OpenPausePs(tables_.PortOf(from_left_)), 0);
  EXPECT_FALSE(ports_.IsPaused(from_left_));
}

TEST_F(EgressPortsTest, AStormHoldsDataWhateverFramesSay) {
  EXPECT_FALSE(ports_.SetStorm(from_left_, true));
  Send(1, 1'000);
  Send(2, 64, PacketKind::kCnp);
  At(1'000,
     [&] { EXPECT_FALSE(ports_.Obey({.channel = FirstChannelOf(from_left_), .xoff = false})); });
  At(100'000, [&] { EXPECT_TRUE(ports_.SetStorm(from_left_, false)); });
  engine().Run();
  EXPECT_EQ(arrived_, (Arrivals{{2, 6'120}, {1, 181'000}}));
}

TEST_F(EgressPortsTest, DataWithoutCreditWaitsUntilItIsBack) {
  LimitCredit(1'500);
  Send(1, 1'000);
  Send(2, 1'000);
  At(300'000, [&] {
    EXPECT_EQ(tables_.is_held[from_left_], 1);
    EXPECT_TRUE(accounts_.GiveBackCredit(FirstChannelOf(from_left_), 1'000))
        << "somebody waits for it";
    EXPECT_TRUE(ports_.WakeForCredit(FirstChannelOf(from_left_)));
    EXPECT_EQ(tables_.is_held[from_left_], 0);
  });
  engine().Run();
  EXPECT_EQ(arrived_, (Arrivals{{1, 81'000}, {2, 381'000}}));
  EXPECT_EQ(accounts_[FirstChannelOf(from_left_)].bytes, 1'000u) << "of the second packet";
}

TEST_F(EgressPortsTest, WhatWaitsTakesTheNewRate) {
  Send(1, 1'000);
  Send(2, 1'000);
  At(40'000, [&] {
    ports_.LeaveShortForm(from_left_);
    tables_.rates_bps[from_left_] = kRateBps / 4;
    tables_.links[from_left_].usual_wire_bytes = 0;
    ports_.RetimeWaiting(from_left_);
    ports_.Resume(from_left_);
    EXPECT_EQ(tables_.BacklogPs(from_left_), 40'000 + 320'000);
  });
  engine().Run();
  EXPECT_EQ(arrived_, (Arrivals{{1, 81'000}, {2, 401'000}}));
}

// A frame takes 6,720 ps on the wire and 1,000 ps to get there, and then the sender responds.
class PauseFramesTest : public testing::TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    frames_.Reset();
    tables_.settings.pause_response_ps = 10'000;
  }

  PauseFrames frames_{tables_};
};

TEST_F(PauseFramesTest, FramesOfAChannelFollowEachOther) {
  EXPECT_EQ(frames_.Send({.channel = FirstChannelOf(from_left_), .xoff = true}), 6'720 + 11'000);
  EXPECT_EQ(frames_.Send({.channel = FirstChannelOf(from_left_), .xoff = false}),
            2 * 6'720 + 11'000);
  EXPECT_EQ(frames_.Send({.channel = FirstChannelOf(from_right_), .xoff = true}), 6'720 + 11'000);
  EXPECT_EQ(tables_.counters.xoff_frames, 2u);
  EXPECT_EQ(tables_.counters.xon_frames, 1u);
}

TEST_F(PauseFramesTest, AFrameWaitsForThePacketInServiceAlone) {
  for (int i = 0; i < 2; ++i) {
    const PacketId index = MakePacket(to_left_, 1'000);
    tables_.SendInShortForm(index, tables_.packets[index], tables_.links[to_left_]);
  }
  EXPECT_EQ(frames_.Send({.channel = FirstChannelOf(from_left_), .xoff = true}),
            80'000 + 6'720 + 11'000);
}

TEST_F(PauseFramesTest, TheEventNamesTheFrame) {
  for (const bool xoff : {true, false}) {
    const PauseFrame frame{.channel = VirtualChannelId{7}, .xoff = xoff};
    EXPECT_EQ(PauseFrame::OfEvent(frame.event_id()).channel, 7u);
    EXPECT_EQ(PauseFrame::OfEvent(frame.event_id()).xoff, xoff);
  }
}

}  // namespace
}  // namespace railyard
