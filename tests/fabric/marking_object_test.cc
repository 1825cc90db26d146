// SPDX-License-Identifier: GPL-2.0-only
// Marking and in-band telemetry, each alone. Thresholds are for 25 Gb/s: 100,000 B are 32 us of it,
// and of a port of another rate.
#include <vector>

#include <gtest/gtest.h>

#include "simulator/fabric/buffer/marking.h"
#include "simulator/fabric/tables/telemetry_table.h"
#include "simulator/units/units.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

class MarkingObjectTest : public testing::TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    std::vector<const BufferSettings*> of_device(graph_.device_count());
    of_device[leaf_] = &settings_;
    marking_.SetSettings(of_device);
  }
  bool IsMarked(int64_t backlog_ps, PacketKind kind = PacketKind::kNetworkData) {
    Packet& packet = tables_.packets[MakePacket(to_right_, 1'000, kind)];
    const bool is_marked = marking_.Mark(packet, backlog_ps);
    EXPECT_EQ((packet.flags & Packet::kEcnMarked) != 0, is_marked);
    return is_marked;
  }

  BufferSettings settings_ = {.ecn_kmin_bytes = 100'000, .ecn_kmax_bytes = 400'000, .ecn_pmax = 0};
  Marking marking_{tables_};
};

TEST_F(MarkingObjectTest, ThresholdsAreTimes) {
  EXPECT_EQ(marking_.StartPs(to_right_), 32 * kPsPerUs);
  EXPECT_EQ(marking_.StartPs(from_left_), kNeverPs) << "NICs do not mark";
  marking_.SetThreshold(to_right_);
  EXPECT_EQ(tables_.links[to_right_].mark_above, 32 * kPsPerUs / 1'024);
  tables_.rates_bps[to_right_] = kRateBps / 2;
  EXPECT_EQ(marking_.StartPs(to_right_), 64 * kPsPerUs) << "as many bytes take twice the time";
}

TEST_F(MarkingObjectTest, MarksAboveTheUpperThresholdAndBetweenThemByChance) {
  EXPECT_FALSE(IsMarked(32 * kPsPerUs));
  EXPECT_EQ(tables_.counters.draws, 0u);
  EXPECT_FALSE(IsMarked(128 * kPsPerUs)) << "with a probability of 0";
  EXPECT_EQ(tables_.counters.draws, 1u);
  EXPECT_TRUE(IsMarked(128 * kPsPerUs + 1));
  EXPECT_FALSE(IsMarked(128 * kPsPerUs + 1, PacketKind::kAck)) << "RDMA writes alone";
  EXPECT_EQ(tables_.counters.ecn_marked, 1u);
  EXPECT_EQ(tables_.counters.draws, 1u);
}

class TelemetryTableTest : public testing::TablesFixture {
 protected:
  TelemetryTable telemetry_{tables_};
};

TEST_F(TelemetryTableTest, SwitchesWriteWhatThePortHasSentAndHolds) {
  telemetry_.Enable();
  EXPECT_NE(tables_.links[to_right_].send_flags & LinkRecord::kTelemetry, 0);
  EXPECT_EQ(tables_.links[from_left_].send_flags & LinkRecord::kTelemetry, 0) << "a NIC's port";
  const PacketId first = MakePacket(to_right_, 1'000);
  telemetry_.Clear(first);
  telemetry_.Stamp(first, 0);
  const PacketId second = MakePacket(to_right_, 1'000);
  telemetry_.Clear(second);
  telemetry_.Stamp(second, 600 * kPsPerByte);
  ASSERT_EQ(telemetry_.Of(second).size(), 1u);
  EXPECT_EQ(telemetry_.Of(second)[0].backlog_bytes, 600u);
  EXPECT_EQ(telemetry_.Of(second)[0].sent_bytes, 400u) << "of the first packet";
  EXPECT_EQ(telemetry_.Of(second)[0].rate_bps, kRateBps);
  EXPECT_EQ(telemetry_.Of(first)[0].sent_bytes, 0u);
}

TEST_F(TelemetryTableTest, FiveHopsAreRecorded) {
  telemetry_.Enable();
  const PacketId index = MakePacket(to_right_, 1'000);
  telemetry_.Clear(index);
  for (int hop = 0; hop < 7; ++hop) telemetry_.Stamp(index, 0);
  EXPECT_EQ(telemetry_.Of(index).size(), 5u);
  const PacketId copy = MakePacket(to_right_, 1'000);
  telemetry_.Copy(index, copy);
  EXPECT_EQ(telemetry_.Of(copy).size(), 5u);
  telemetry_.Clear(index);
  EXPECT_TRUE(telemetry_.Of(index).empty());
  EXPECT_EQ(telemetry_.Of(copy).size(), 5u);
}

TEST_F(TelemetryTableTest, CollectsNothingUnlessEnabled) {
  const PacketId from = MakePacket(to_right_, 1'000);
  telemetry_.Copy(from, MakePacket(to_right_, 1'000));
  EXPECT_TRUE(telemetry_.Of(from).empty());
  EXPECT_EQ(tables_.links[to_right_].send_flags & LinkRecord::kTelemetry, 0);
}

}  // namespace
}  // namespace railyard
