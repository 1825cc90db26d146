// SPDX-License-Identifier: GPL-2.0-only
// Tests a part of a network alone: the left NIC is in it, the switch and the right NIC are
// elsewhere. A packet of 1,000 B takes 80,000 ps and then 1,000 ps on the wire.
#include "simulator/fabric/fabric_part.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/event_order/event_order.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class FabricPartTest : public testing::TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    engine().Register(event_order::kArrival, {.name = "arrivals"}, &FabricPartTest::HandleArrival,
                      this);
    engine().Register(event_order::kPauseFrame, {.name = "pause frames"},
                      &FabricPartTest::HandlePauseFrame, this);
    part_.SetBorder({from_left_}, {to_left_});
  }
  static void HandleArrival(void* self, uint32_t target) {
    auto& test = *static_cast<FabricPartTest*>(self);
    const Packet& packet = test.tables_.packets[PacketId{target}];
    --test.tables_.links[packet.link].timed;
    test.arrived_.emplace_back(packet.sequence, engine().NowPs());
  }
  static void HandlePauseFrame(void* self, uint32_t id) {
    static_cast<FabricPartTest*>(self)->frames_.emplace_back(id, engine().NowPs());
  }
  // Puts a packet of 1,000 B with 900 B of payload on the outgoing link.
  PacketId Send(uint32_t sequence) {
    const PacketId index = MakePacketFrom(FirstChannelOf(to_right_), from_left_, 1'000);
    Packet& packet = tables_.packets[index];
    packet.sequence = sequence;
    packet.hop_count = 2;
    packet.payload_bytes = 900;
    LinkRecord& link = tables_.links[from_left_];
    ++link.sent;
    tables_.SendInShortForm(index, packet, link);
    return index;
  }
  // Counts the arrival of a packet as a network does.
  void Count(PacketId index) {
    LinkRecord& link = tables_.links[from_left_];
    ++link.packets;
    link.wire_bytes += tables_.packets[index].wire_bytes;
    link.payload_bytes += DataBytes(tables_.packets[index]);
    ++tables_.counters.packet_hops;
  }
  std::vector<std::pair<uint32_t, int64_t>> Collect(int64_t before_ps, int64_t next_ps) {
    std::vector<Crossing> crossings;
    EXPECT_EQ(part_.Collect(before_ps, crossings), next_ps);
    std::vector<std::pair<uint32_t, int64_t>> collected;
    for (const Crossing& crossing : crossings) {
      EXPECT_FALSE(crossing.is_pause_frame());
      EXPECT_EQ(crossing.packet.ingress, VirtualChannelId::kNone) << "its account stays here";
      collected.emplace_back(crossing.packet.sequence, crossing.time_ps());
    }
    return collected;
  }

  LinkDelays delays_;
  FabricPart part_{tables_, delays_};
  std::vector<std::pair<uint32_t, int64_t>> arrived_;  // sequence and time
  std::vector<std::pair<uint32_t, int64_t>> frames_;   // event and time
};

TEST_F(FabricPartTest, ABorderHasLinksOfBothDirections) {
  const FabricPart whole(tables_, delays_);
  EXPECT_FALSE(whole.has_border());
  EXPECT_FALSE(whole.IsOnBorder(from_left_));
  EXPECT_TRUE(part_.has_border());
  EXPECT_TRUE(part_.IsOnBorder(from_left_));
  EXPECT_TRUE(part_.IsOnBorder(to_left_));
  EXPECT_FALSE(part_.IsOnBorder(to_right_));
  EXPECT_FALSE(part_.ComesFromElsewhere(from_left_));
  EXPECT_TRUE(part_.ComesFromElsewhere(to_left_));
  EXPECT_EQ(tables_.links[from_left_].arrival, LinkRecord::Arrival::kElsewhere);
  EXPECT_EQ(tables_.links[to_left_].arrival, LinkRecord::Arrival::kForward);
}

TEST_F(FabricPartTest, PacketsCrossOnceTheirTransmissionHasBegun) {
  for (uint32_t sequence = 0; sequence < 3; ++sequence) Send(sequence);
  EXPECT_THAT(Collect(0, 0), IsEmpty());
  EXPECT_THAT(Collect(100'000, 160'000), ElementsAre(Pair(0, 81'000), Pair(1, 161'000)));
  EXPECT_THAT(Collect(100'000, 160'000), IsEmpty()) << "each crosses once";
  EXPECT_THAT(Collect(160'001, INT64_MAX), ElementsAre(Pair(2, 241'000)));
}

TEST_F(FabricPartTest, WhatCrossesArrivesAtItsTime) {
  Crossing crossing;
  crossing.packet.link = to_left_;
  crossing.packet.sequence = 7;
  crossing.packet.hop_count = 2;
  crossing.packet.arrival_ps = 5'000;
  part_.Take(crossing);
  const uint32_t event = PauseFrame{.channel = FirstChannelOf(from_left_), .xoff = true}.event_id();
  part_.Take(Crossing::OfPauseFrame(3'000, from_left_, event));
  EXPECT_EQ(tables_.links[to_left_].timed, 1u);
  engine().Run();
  EXPECT_THAT(arrived_, ElementsAre(Pair(7, 5'000)));
  EXPECT_THAT(frames_, ElementsAre(Pair(event, 3'000)));
}

TEST_F(FabricPartTest, PauseFramesAreCollectedOnce) {
  const PauseFrame frame{.channel = FirstChannelOf(to_left_), .xoff = false};
  part_.LeaveFrame(frame, 9'000);
  std::vector<Crossing> crossings;
  EXPECT_EQ(part_.Collect(0, crossings), INT64_MAX);
  EXPECT_EQ(part_.Collect(0, crossings), INT64_MAX);
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_TRUE(crossings[0].is_pause_frame());
  EXPECT_EQ(crossings[0].time_ps(), 9'000);
  EXPECT_EQ(crossings[0].packet.link, to_left_);
  EXPECT_EQ(crossings[0].packet.flow, frame.event_id());
}

TEST_F(FabricPartTest, APacketThatLeavesIsCountedElsewhere) {
  const PacketId index = Send(0);
  Collect(1, INT64_MAX);
  Count(index);
  part_.Leave(index);
  EXPECT_EQ(part_.arrivals_elsewhere(), 1u);
  EXPECT_EQ(tables_.packets.live_count(), 0u);
  const LinkRecord& link = tables_.links[from_left_];
  EXPECT_EQ(link.packets, 0u);
  EXPECT_EQ(link.wire_bytes, 0u);
  EXPECT_EQ(link.payload_bytes, 0u);
  EXPECT_EQ(tables_.counters.packet_hops, 0u);
  EXPECT_EQ(part_.obstacle(), "");
  const PacketId kept = Send(1);
  EXPECT_DEATH(part_.Leave(kept), "a packet that nobody takes");
}

TEST_F(FabricPartTest, LossesAndRepetitionsAreObstacles) {
  part_.NoteDrop(DropReason::kOutOfSequence);
  part_.NoteDrop(DropReason::kDuplicate);
  EXPECT_EQ(part_.obstacle(), "");
  part_.NoteDrop(DropReason::kBufferFull);
  EXPECT_EQ(part_.obstacle(), "packets are lost (BUFFER_FULL)");
  const PacketId index = Send(0);
  tables_.packets[index].flags |= Packet::kRetransmitted;
  Collect(1, INT64_MAX);
  part_.Leave(index);
  EXPECT_EQ(part_.obstacle(), "packets are sent again");
}

TEST_F(FabricPartTest, ThePartWithItsTargetCountsAPacketInFlight) {
  Send(0);
  Send(1);
  EXPECT_EQ(part_.InFlightBytes(), 1'800u);
  Collect(1, 80'000);
  EXPECT_EQ(part_.InFlightBytes(), 900u);
  const std::vector<LinkTotals> totals = part_.Totals();
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals[0].link, from_left_);
  EXPECT_EQ(totals[0].sent, 2u);
  EXPECT_EQ(totals[0].on_link, 2u) << "the part with the link's source counts these";
}

TEST_F(FabricPartTest, TheWholeAddsUpItsParts) {
  FabricPart whole(tables_, delays_);
  EXPECT_FALSE(whole.has_absorbed());
  NetworkCounters counters;
  counters.packet_hops = 5;
  const std::vector<LinkTotals> source = {{.link = from_left_, .sent = 3, .on_link = 1}};
  const std::vector<LinkTotals> target = {{.link = from_left_,
                                           .sent = 0,
                                           .on_link = 0,
                                           .payload_bytes = 1'800,
                                           .wire_bytes = 2'000,
                                           .packets = 2}};
  whole.Absorb(source, counters, 900);
  EXPECT_DEATH(whole.CheckAbsorbed(), "3 were put on it, 0 arrived, 1 are there");
  whole.Absorb(target, counters, 100);
  whole.CheckAbsorbed();
  EXPECT_TRUE(whole.has_absorbed());
  EXPECT_EQ(whole.absorbed_in_flight_bytes(), 1'000u);
  EXPECT_EQ(tables_.counters.packet_hops, 10u);
  EXPECT_EQ(tables_.links[from_left_].wire_bytes, 2'000u);
}

}  // namespace
}  // namespace railyard
