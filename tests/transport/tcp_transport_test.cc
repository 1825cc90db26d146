// SPDX-License-Identifier: GPL-2.0-only
// TCP streams over a fabric: goodput, slow start, losses, back-off, the receiver's window.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/callback.h>

#include "tests/transport/tcp_fixture.h"

namespace railyard {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr uint64_t kPiece = uint64_t{1'448} * 45;

std::vector<int64_t>* timeouts = nullptr;
void NoteTimeout(const NicTimeout& event) { timeouts->push_back(event.time_ps); }

class TcpTransportTest : public testing::TcpFixture {
 protected:
  void Connect(const NicSettings& settings = TcpNic()) {
    BuildTransports(settings);
    stream_ = Open(7, GpuIndex{0}, GpuIndex{1}, 99);
    timeouts = &timeouts_;
    for (const ns3::Ptr<Nic>& nic : tcp_->nic_kinds().nics()) {
      if (nic == nullptr) continue;
      nic->TraceConnectWithoutContext("Timeout", ns3::MakeCallback(&NoteTimeout));
    }
  }
  void Post(uint64_t pieces) {
    for (uint64_t i = 0; i < pieces; ++i) tcp_->Post(stream_, PostedMessage::OfData(kPiece));
  }
  void ExpectAllDelivered(uint64_t pieces) {
    EXPECT_THAT(delivered_, SizeIs(pieces));
    EXPECT_THAT(completed_, SizeIs(pieces));
    EXPECT_THAT(errors_, IsEmpty());
    EXPECT_EQ(network().counters().delivered_bytes, pieces * kPiece);
    EXPECT_EQ(network().live_packets(), 0u);
    ExpectConservation();
  }

  FlowId stream_;
  std::vector<int64_t> timeouts_;
};

// 1,448 of 1,538 bytes on the wire are payload.
TEST_F(TcpTransportTest, GoodputIsThePayloadsShareOfTheWire) {
  Connect();
  Post(400);
  engine().Run();
  ExpectAllDelivered(400);
  EXPECT_EQ(tcp_->counters().retransmitted_packets, 0u);
  // From the 100th piece on, long after slow start.
  const auto taken_ps = static_cast<double>(delivered_[399].time_ps - delivered_[99].time_ps);
  const double bits_per_s = 300 * 8 * static_cast<double>(kPiece) / taken_ps * 1e12;
  EXPECT_NEAR(bits_per_s, 100e9 * 1'448 / 1'538, 1e6);
}

TEST_F(TcpTransportTest, SlowStartDoublesWhatIsUnderWayEachRoundTrip) {
  Connect();
  // Messages of a segment each, so that every one says when it was acknowledged.
  for (int i = 0; i < 400; ++i) tcp_->Post(stream_, PostedMessage::OfData(kSegment));
  engine().Run();
  ASSERT_THAT(completed_, SizeIs(400));
  // 10, 20, 40, 80 segments: what an ACK lets go comes back a round trip later.
  size_t first = 0;
  int64_t expected_ps = RoundTripPs();
  for (const size_t segments : {10u, 20u, 40u, 80u}) {
    EXPECT_NEAR(static_cast<double>(completed_[first].time_ps), static_cast<double>(expected_ps),
                static_cast<double>(4 * kSegmentPs));
    expected_ps += RoundTripPs();
    first += segments;
  }
}

TEST_F(TcpTransportTest, LostSegmentsAreSentAgainAloneWithinRoundTripsWithoutATimeout) {
  Connect();
  Post(100);
  // Packets on the wire at that time are lost.
  const int64_t cut_ps = 400 * kPsPerUs;
  Down(out_, cut_ps, cut_ps + 1);
  engine().Run();
  ExpectAllDelivered(100);
  EXPECT_THAT(timeouts_, IsEmpty());
  EXPECT_EQ(tcp_->counters().retransmitted_packets, lost_.size());
  EXPECT_EQ(Drops(DropReason::kDuplicate), 0u);
  ASSERT_THAT(retransmitted_, SizeIs(1));
  ASSERT_THAT(recovered_, SizeIs(1));
  EXPECT_LT(retransmitted_[0].time_ps, cut_ps + 2 * RoundTripPs());
  EXPECT_LT(recovered_[0].time_ps, cut_ps + 4 * RoundTripPs());
}

// Packets in flight are lost with all their ACKs: the sender waits for the time-out, which doubles
// until the link is back.
TEST_F(TcpTransportTest, AFlapIsRiddenThrough) {
  Connect();
  Post(100);
  const int64_t down_ps = 400 * kPsPerUs;
  Down(out_, down_ps, down_ps + 300 * kPsPerMs);
  engine().Run();
  ExpectAllDelivered(100);
  ASSERT_THAT(timeouts_, SizeIs(2));
  EXPECT_NEAR(static_cast<double>(timeouts_[0]), 200e9, 1e9);
  EXPECT_NEAR(static_cast<double>(timeouts_[1] - timeouts_[0]),
              2 * static_cast<double>(timeouts_[0] - down_ps), 0.2e9);
  EXPECT_GT(tcp_->counters().retransmitted_packets, 0u);
  ASSERT_THAT(recovered_, SizeIs(1));
  EXPECT_NEAR(static_cast<double>(recovered_[0].time_ps), static_cast<double>(timeouts_[1]), 1e9);
}

// After a time-out one segment is in flight. Its receiver answers it alone, though it holds every
// other ACK back, so that one time-out is enough.
TEST_F(TcpTransportTest, WhatComesAfterASilenceIsAnsweredAtOnce) {
  Connect();
  Post(20);
  Down(out_, 100 * kPsPerUs, 100 * kPsPerMs);
  engine().Run();
  ExpectAllDelivered(20);
  EXPECT_THAT(timeouts_, SizeIs(1));
  EXPECT_LT(delivered_.back().time_ps, timeouts_[0] + 50 * RoundTripPs());
}

// The host acknowledges, not its NIC: what is lost between the two is a loss like any other.
TEST_F(TcpTransportTest, WhatIsLostBetweenNicAndMemoryIsSentAgain) {
  Connect();
  Post(100);
  const int64_t cut_ps = 400 * kPsPerUs;
  Down(Link("server1/nic0", "server1/gpu0"), cut_ps, cut_ps + 20 * kPsPerUs);
  engine().Run();
  ExpectAllDelivered(100);
  EXPECT_THAT(lost_, ::testing::Not(IsEmpty()));
  EXPECT_EQ(tcp_->counters().retransmitted_packets, lost_.size());
}

// Linux gives up when it has been sending again for 924.6 s (tcp_retries2 = 15): the tries are 0.2,
// 0.4, ... 102.4 s apart, then 120 s.
TEST_F(TcpTransportTest, ACutEndsTheStreamAsLinuxDoesAfterFifteenBackOffs) {
  Connect();
  Post(100);
  Down(out_, 400 * kPsPerUs, kNeverPs);
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_THAT(errors_[0].why, StartsWith("ETIMEDOUT(110) on server0/nic0 -> server1/nic0"));
  ASSERT_THAT(timeouts_, ::testing::Not(IsEmpty()));
  double interval_ps = static_cast<double>(timeouts_[1] - timeouts_[0]);
  EXPECT_NEAR(interval_ps, 400e9, 1e9);
  for (size_t i = 2; i < timeouts_.size(); ++i) {
    interval_ps = std::min(2 * interval_ps, 120e12);
    EXPECT_NEAR(static_cast<double>(timeouts_[i] - timeouts_[i - 1]), interval_ps, 1e6) << i;
  }
  const auto repeated_ps = static_cast<double>(errors_[0].time_ps - timeouts_[0]);
  EXPECT_GE(repeated_ps, 924.6e12);
  EXPECT_LT(repeated_ps, 924.6e12 + 120e12);
  EXPECT_EQ(timeouts_.size() >= 16 && timeouts_.size() <= 17, true) << timeouts_.size();
}

// An application that does not read: the receiver's buffer fills, no more is sent.
TEST_F(TcpTransportTest, WhatTheApplicationDoesNotReadStopsTheSender) {
  NicSettings nic = TcpNic();
  nic.window_bytes = 10 * kPiece;
  Connect(nic);
  tcp_->ReadByHand(stream_);
  Post(30);
  At(10 * kPsPerMs, [this] {
    EXPECT_THAT(delivered_, SizeIs(10));
    EXPECT_TRUE(tcp_->StatusOf(stream_).is_under_way);
    for (int i = 0; i < 10; ++i) tcp_->Read(stream_, kPiece);
    on_delivered_ = [this](uint32_t) { tcp_->Read(stream_, kPiece); };
  });
  engine().Run();
  ExpectAllDelivered(30);
  EXPECT_EQ(Drops(DropReason::kDuplicate), 0u);  // no probe was needed
}

// The news of room is lost: a probe asks for it, a time-out later.
TEST_F(TcpTransportTest, AProbeFindsRoomWhoseNewsWasLost) {
  NicSettings nic = TcpNic();
  nic.window_bytes = 10 * kPiece;
  Connect(nic);
  tcp_->ReadByHand(stream_);
  Post(30);
  Down(ack_out_, 9 * kPsPerMs, 11 * kPsPerMs);
  At(10 * kPsPerMs, [this] {
    for (int i = 0; i < 10; ++i) tcp_->Read(stream_, kPiece);
    on_delivered_ = [this](uint32_t) { tcp_->Read(stream_, kPiece); };
  });
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(30));
  EXPECT_EQ(Drops(DropReason::kDuplicate), 1u);
  EXPECT_NEAR(static_cast<double>(delivered_[10].time_ps), 200e9, 2e9);
}

}  // namespace
}  // namespace railyard
