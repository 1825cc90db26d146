// SPDX-License-Identifier: GPL-2.0-only
// Reduction and replication in switches, alone: packets are handed to the object and what it makes
// of them is looked at.
#include "simulator/fabric/in_network/in_network_reduction.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/fabric/tables/path_table.h"
#include "simulator/fabric/tables/telemetry_table.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

using Outcome = InNetworkReduction::Outcome;

// Three GPUs on an NVSwitch.
class NvSwitchTest : public testing::TablesFixture {
 protected:
  void AddDevices() override {
    const DeviceId nvswitch = AddDevice("server0/nvswitch0", DeviceKind::kNvSwitch, 0, 0);
    for (int32_t i = 0; i < 3; ++i) {
      const DeviceId gpu = AddDevice("server0/gpu" + std::to_string(i), DeviceKind::kGpu, 0, i);
      up_.push_back(AddCable(gpu, nvswitch, Tier::kNvlink));
      down_.push_back(graph_.ReverseLink(up_.back()));
    }
  }
  PacketId Operand(LinkId link, uint32_t group, uint32_t piece) {
    const PacketId index = MakePacket(link, 1'040, PacketKind::kNvlinkOperand);
    Packet& packet = tables_.packets[index];
    packet.flow = group;
    packet.sequence = piece;
    packet.payload_bytes = 1'000;
    packet.next_link = down_[0];
    return index;
  }

  std::vector<LinkId> up_;
  std::vector<LinkId> down_;
  PathTable paths_;
  TelemetryTable telemetry_{tables_};
  InNetworkReduction reduction_{tables_, paths_, telemetry_};
};

TEST_F(NvSwitchTest, TheLastOperandOfAPieceGoesOnAsItsSum) {
  const uint32_t group = reduction_.AddSwitchGroup(2, {up_[0], up_[1]});
  EXPECT_EQ(tables_.links[up_[0]].arrival, LinkRecord::Arrival::kCombining);
  EXPECT_EQ(tables_.links[up_[2]].arrival, LinkRecord::Arrival::kForward);
  const PacketId first = Operand(up_[0], group, 0);
  const Outcome taken = reduction_.Arrive(first);
  EXPECT_EQ(taken.taken, first);
  EXPECT_TRUE(taken.sent_on.empty());
  const PacketId last = Operand(up_[1], group, 0);
  const Outcome sum = reduction_.Arrive(last);
  EXPECT_EQ(sum.taken, PacketId::kNone);
  EXPECT_EQ(std::vector(sum.sent_on.begin(), sum.sent_on.end()), (std::vector<PacketId>{last}));
  EXPECT_EQ(tables_.packets[last].payload_bytes, 1'000);
  EXPECT_EQ(tables_.packets[last].next_link, down_[0]);
  EXPECT_EQ(tables_.counters.reduced_bytes, 1'000u);
  EXPECT_EQ(reduction_.CountersOf(up_[0]).reduced_bytes, 1'000u);
  EXPECT_EQ(reduction_.CountersOf(up_[0]).packets, UINT32_MAX) << "one less, modulo 2^32";
  EXPECT_EQ(reduction_.CountersOf(up_[1]).reduced_bytes, 0u);
}

TEST_F(NvSwitchTest, PiecesAreCountedEachByItself) {
  const uint32_t group = reduction_.AddSwitchGroup(3, up_);
  // The first GPU is 100 pieces ahead of the others.
  for (uint32_t piece = 0; piece < 100; ++piece) {
    EXPECT_TRUE(reduction_.Arrive(Operand(up_[0], group, piece)).sent_on.empty());
  }
  for (uint32_t piece = 0; piece < 100; ++piece) {
    EXPECT_TRUE(reduction_.Arrive(Operand(up_[1], group, piece)).sent_on.empty());
    EXPECT_EQ(reduction_.Arrive(Operand(up_[2], group, piece)).sent_on.size(), 1u);
  }
  EXPECT_EQ(tables_.counters.reduced_bytes, 2u * 100 * 1'000);
}

TEST_F(NvSwitchTest, EveryGpuOfAGroupGetsACopyAndTheBusiestLinkTheOriginal) {
  const uint32_t group = reduction_.AddSwitchGroup(3, up_);
  const PathRef path =
      paths_.Add({up_[0], down_[0], down_[1], down_[2]}, std::nullopt, *tables_.classes);
  tables_.links[down_[1]].busy_until_ps = 5'000;
  const PacketId index = MakePacket(up_[0], 1'040, PacketKind::kNvlinkMulticast);
  tables_.packets[index].flow = group;
  tables_.packets[index].path = path.first;
  tables_.packets[index].payload_bytes = 1'000;
  tables_.packets[index].ingress = FirstChannelOf(up_[0]);
  const Outcome outcome = reduction_.Arrive(index);
  EXPECT_EQ(outcome.taken, PacketId::kNone);
  ASSERT_EQ(outcome.sent_on.size(), 3u);
  EXPECT_EQ(outcome.sent_on[2], index) << "the room in front of the switch is free with the last";
  std::vector<bool> has_copy(3);
  for (const PacketId sent : outcome.sent_on) {
    const Packet& packet = tables_.packets[sent];
    EXPECT_EQ(packet.next_link, down_[packet.tag]);
    EXPECT_EQ(packet.payload_bytes, 1'000);
    EXPECT_EQ(packet.ingress, sent == index ? FirstChannelOf(up_[0]) : VirtualChannelId::kNone);
    has_copy[packet.tag] = true;
  }
  EXPECT_EQ(has_copy, std::vector<bool>(3, true));
  EXPECT_EQ(tables_.packets[index].tag, 1);
  EXPECT_EQ(tables_.counters.replicated_bytes, 2'000u);
  EXPECT_EQ(reduction_.CountersOf(up_[0]).packets, 2u);
}

// A part of the network is visited before and after a call of it is replayed; meanwhile another
// part may have used its first group.
TEST_F(NvSwitchTest, ALinkHasAsManyCountsBeforeTheFirstGroupAsAfterIt) {
  const auto counts_of = [this](LinkId link) {
    StateArchive archive(0);
    archive.Section();
    reduction_.Visit(link, archive);
    return archive.TakeCounts();
  };
  const CountSnapshot before = counts_of(up_[0]);
  const uint32_t group = reduction_.AddSwitchGroup(2, {up_[0], up_[1]});
  EXPECT_EQ(counts_of(up_[0]), before);
  reduction_.Arrive(Operand(up_[0], group, 0));
  reduction_.Arrive(Operand(up_[1], group, 0));
  const CountSnapshot after = counts_of(up_[0]);
  EXPECT_TRUE(HasPlacesOf(before, after) && HasPlacesOf(after, before));
  EXPECT_FALSE(ChangesBetween(before, after).empty());
}

TEST_F(NvSwitchTest, RequestsAreCountedWithTheirCopies) {
  const uint32_t group = reduction_.AddSwitchGroup(2, {up_[0]});
  const PathRef path = paths_.Add({up_[0], down_[1], down_[2]}, std::nullopt, *tables_.classes);
  const PacketId index = MakePacket(up_[0], 40, PacketKind::kNvlinkReadRequest);
  tables_.packets[index].flow = group;
  tables_.packets[index].path = path.first;
  EXPECT_EQ(reduction_.Arrive(index).sent_on.size(), 2u);
  EXPECT_EQ(reduction_.CountersOf(up_[0]).requests, 1u);
  EXPECT_EQ(reduction_.CountersOf(up_[0]).request_copies, 2u);
  EXPECT_EQ(tables_.counters.replicated_bytes, 0u);
}

// The two NICs of the fixture are members 0 and 1 of a tree with one switch.
class AggregationTest : public testing::TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    root_ = reduction_.AddNode({.down = {{.link = to_left_, .flow = 10, .members = {0}},
                                         {.link = to_right_, .flow = 11, .members = {1}}}});
  }
  // Member `from` is the only one that gives a payload, of 1,000 B.
  PacketId Operand(LinkId link, bool is_empty, uint64_t from) {
    const PacketId index = MakePacket(link, is_empty ? 40 : 1'040, PacketKind::kAggregateOperand);
    Packet& packet = tables_.packets[index];
    packet.flow = root_;
    packet.payload_bytes = is_empty ? 0 : 1'000;
    packet.echo = 1'000;
    packet.acknowledged = from;
    packet.ingress = FirstChannelOf(link);
    return index;
  }

  uint32_t root_ = 0;
  PathTable paths_;
  TelemetryTable telemetry_{tables_};
  InNetworkReduction reduction_{tables_, paths_, telemetry_};
};

TEST_F(AggregationTest, TheRootSendsTheSumDownEveryBranch) {
  EXPECT_EQ(tables_.links[from_left_].arrival, LinkRecord::Arrival::kCombining);
  const PacketId first = Operand(from_left_, false, 0);
  EXPECT_EQ(reduction_.Arrive(first).taken, first);
  const PacketId last = Operand(from_right_, false, 0);
  const Outcome outcome = reduction_.Arrive(last);
  EXPECT_EQ(outcome.taken, PacketId::kNone);
  ASSERT_EQ(outcome.sent_on.size(), 2u);
  for (const PacketId sent : outcome.sent_on) {
    const Packet& packet = tables_.packets[sent];
    EXPECT_EQ(packet.kind, PacketKind::kAggregateResult);
    EXPECT_EQ(packet.payload_bytes, 1'000);
    EXPECT_EQ(packet.flow, packet.next_link == to_left_ ? 10u : 11u);
  }
  EXPECT_EQ(tables_.counters.reduced_bytes, 1'000u);
  EXPECT_EQ(tables_.counters.replicated_bytes, 1'000u);
}

TEST_F(AggregationTest, AnEmptyLastOperandGoesOnWithThePayloadThatCameBefore) {
  const PacketId full = Operand(from_left_, false, 0);
  EXPECT_EQ(reduction_.Arrive(full).taken, full);
  const PacketId empty = Operand(from_right_, true, 0);
  const Outcome outcome = reduction_.Arrive(empty);
  EXPECT_EQ(outcome.taken, empty) << "another packet has the payload";
  ASSERT_EQ(outcome.sent_on.size(), 2u);
  for (const PacketId sent : outcome.sent_on) {
    EXPECT_NE(sent, empty);
    EXPECT_EQ(tables_.packets[sent].payload_bytes, 1'000);
    EXPECT_EQ(tables_.packets[sent].wire_bytes, 1'040);
    EXPECT_EQ(tables_.packets[sent].ingress, VirtualChannelId::kNone);
  }
}

TEST_F(AggregationTest, AResultForOneMemberIsEmptyForTheOthers) {
  const PacketId index = MakePacket(from_left_, 1'040, PacketKind::kAggregateResult);
  tables_.packets[index].flow = root_;
  tables_.packets[index].payload_bytes = 1'000;
  tables_.packets[index].flags = Packet::kForOne;
  tables_.packets[index].acknowledged = 1;
  const Outcome outcome = reduction_.Arrive(index);
  ASSERT_EQ(outcome.sent_on.size(), 2u);
  for (const PacketId sent : outcome.sent_on) {
    const Packet& packet = tables_.packets[sent];
    const bool is_for = packet.next_link == to_right_;
    EXPECT_EQ(packet.payload_bytes, is_for ? 1'000 : 0);
    EXPECT_EQ(packet.wire_bytes, is_for ? 1'040 : 40);
  }
}

TEST_F(AggregationTest, ANodeBelowAnotherSendsUp) {
  const uint32_t node =
      reduction_.AddNode({.down = {{.link = to_left_, .flow = 10, .members = {0}}},
                          .up = AggregationNode::Next{.link = to_right_, .flow = 77}});
  EXPECT_EQ(reduction_.node_count(), 2u);
  const PacketId index = Operand(from_left_, false, 0);
  tables_.packets[index].flow = node;
  const Outcome outcome = reduction_.Arrive(index);
  ASSERT_EQ(outcome.sent_on.size(), 1u);
  EXPECT_EQ(tables_.packets[outcome.sent_on[0]].next_link, to_right_);
  EXPECT_EQ(tables_.packets[outcome.sent_on[0]].flow, 77u);
  EXPECT_EQ(tables_.packets[outcome.sent_on[0]].kind, PacketKind::kAggregateOperand);
}

}  // namespace
}  // namespace railyard
