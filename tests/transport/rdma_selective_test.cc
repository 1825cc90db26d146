// SPDX-License-Identifier: GPL-2.0-only
// Selective repeat, reorder tolerance, and what loss costs either way.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/rdma/rdma_transport.h"
#include "simulator/units/mix64.h"
#include "tests/transport/rdma_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kPackets = 100;

class RdmaSelectiveTest : public testing::RdmaFixture {
 protected:
  static NicSettings Selective(uint32_t tolerance = 0) {
    NicSettings nic;
    nic.ib_timeout = 8;
    nic.recovery = Recovery::kSelectiveRepeat;
    nic.reorder_tolerance_packets = tolerance;
    return nic;
  }
  // The first transmissions of these packets are lost.
  void LoseFirst(const std::set<uint32_t>& sequences) {
    network().SetLossFilter(out_, [sequences](const Packet& packet) {
      return packet.kind == PacketKind::kNetworkData && sequences.contains(packet.sequence) &&
             (packet.flags & Packet::kRetransmitted) == 0;
    });
  }
  void LoseNth(LinkId link, PacketKind kind, uint32_t n) {
    network().SetLossFilter(link, [kind, n, seen = 0u](const Packet& packet) mutable {
      return packet.kind == kind && seen++ == n;
    });
  }
  void Post(int64_t packets) {
    rdma_->Post(queue_pair_, PostedMessage::OfData(static_cast<uint64_t>(packets) * kMtu));
  }
  void ExpectAllDelivered(uint64_t retransmitted, uint64_t timeouts) {
    EXPECT_THAT(delivered_, SizeIs(1));
    EXPECT_THAT(completed_, SizeIs(1));
    EXPECT_THAT(errors_, IsEmpty());
    EXPECT_EQ(rdma_->counters().retransmitted_packets, retransmitted);
    EXPECT_EQ(rdma_->counters().timeouts, timeouts);
    EXPECT_EQ(network().live_packets(), 0u);
    ExpectConservation();
  }
};

TEST_F(RdmaSelectiveTest, OnlyTheLostPacketIsSentAgain) {
  Connect(Selective());
  LoseFirst({20});
  Post(kPackets);
  engine().Run();
  ExpectAllDelivered(1, 0);
  EXPECT_EQ(Drops(DropReason::kOutOfSequence), 0u);
  EXPECT_EQ(Drops(DropReason::kDuplicate), 0u);
  EXPECT_EQ(rdma_->counters().nacks, 1u);
  // One packet more on the first wire; in the gap the second one caught up with the longer first
  // packet.
  EXPECT_THAT(delivered_, ElementsAre(Reported{MessagePs(kPackets + 1) - (kFirstPs - kFullPs), 7}));
}

TEST_F(RdmaSelectiveTest, EveryGapOfAWindowIsFilledOnce) {
  Connect(Selective());
  LoseFirst({0, 3, 4, 5, 17, 40, 41, 60});
  Post(kPackets);
  engine().Run();
  ExpectAllDelivered(8, 0);
  EXPECT_EQ(Drops(DropReason::kOutOfSequence), 0u);
  EXPECT_EQ(rdma_->counters().nacks, 5u);  // one for each run of lost packets
}

TEST_F(RdmaSelectiveTest, MessagesThatCompleteTogetherAreDeliveredTogetherInOrder) {
  Connect(Selective());
  LoseFirst({2});
  for (int message = 0; message < 10; ++message)
    rdma_->Post(queue_pair_, PostedMessage::OfData(3'000));  // 3 packets each
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(10));
  EXPECT_THAT(completed_, SizeIs(10));
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 1u);
  EXPECT_EQ(delivered_.front().time_ps, delivered_[5].time_ps);
}

TEST_F(RdmaSelectiveTest, ClearToSendElementsAreHandedOverInOrderAfterTheGap) {
  Connect(Selective());
  LoseNth(ack_out_, PacketKind::kClearToSend, 0);
  for (int i = 0; i < 5; ++i) rdma_->Grant(queue_pair_, true);
  engine().Run();
  EXPECT_THAT(clear_to_send_, SizeIs(5));
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 1u);
  EXPECT_EQ(network().live_packets(), 0u);
}

TEST_F(RdmaSelectiveTest, WhatIsBeyondTheBitmapIsAskedForWhenTheGapIsFilled) {
  // 16 us of propagation: a window of 512 packets is in flight when the NACK arrives.
  graph_ = FabricGraph();
  leaf_ = AddSwitch("leaf0", kLeafForwardPs);
  for (int32_t server = 0; server < 2; ++server) {
    const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
    const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0, kNicForwardPs);
    graph_.AddCable(gpu, nic, {Tier::kHost, 500'000'000'000, kHostDelayPs, 1});
    graph_.AddCable(nic, leaf_, {Tier::kNicLeaf, 400'000'000'000, 16'000'000, 1});
  }
  Connect(Selective());
  out_ = Link("server0/nic0", "leaf0");
  LoseFirst({0});
  Post(200);
  engine().Run();
  // The first is repeated; of the 199 behind it 64 are kept, 135 come again.
  ExpectAllDelivered(1 + 135, 0);
  EXPECT_EQ(Drops(DropReason::kOutOfSequence), 135u);
  EXPECT_EQ(Drops(DropReason::kDuplicate), 0u);
}

TEST_F(RdmaSelectiveTest, ARepetitionThatIsLostTooWaitsForTheTimer) {
  Connect(Selective());
  network().SetLossFilter(out_, [seen = 0](const Packet& packet) mutable {
    return packet.kind == PacketKind::kNetworkData && packet.sequence == 20 && seen++ < 2;
  });
  Post(kPackets);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(1));
  EXPECT_EQ(rdma_->counters().timeouts, 1u);
  EXPECT_THAT(errors_, IsEmpty());
}

// n-th packet of a kind: each is recovered from, by the timer or by what comes later.
struct LossCase {
  Recovery recovery;
  PacketKind kind;
  uint32_t n;
  uint64_t timeouts;
};
class RdmaTargetedLossTest : public RdmaSelectiveTest,
                             public ::testing::WithParamInterface<LossCase> {};

TEST_P(RdmaTargetedLossTest, IsRecoveredFrom) {
  NicSettings nic = Selective();
  nic.recovery = GetParam().recovery;
  Connect(nic);
  const bool is_data = GetParam().kind == PacketKind::kNetworkData;
  if (GetParam().kind == PacketKind::kNack) LoseFirst({50});
  LoseNth(is_data ? out_ : ack_out_, GetParam().kind, GetParam().n);
  Post(kPackets);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(1));
  EXPECT_THAT(completed_, SizeIs(1));
  EXPECT_EQ(rdma_->counters().timeouts, GetParam().timeouts);
  EXPECT_EQ(network().counters().dropped_packets[static_cast<size_t>(DropReason::kBitError)],
            GetParam().kind == PacketKind::kNack ? 2u : 1u);
  EXPECT_THAT(errors_, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    NthOfAKind, RdmaTargetedLossTest,
    ::testing::Values(LossCase{Recovery::kGoBackN, PacketKind::kNetworkData, 99, 1},
                      LossCase{Recovery::kSelectiveRepeat, PacketKind::kNetworkData, 99, 1},
                      LossCase{Recovery::kGoBackN, PacketKind::kNetworkData, 50, 0},
                      LossCase{Recovery::kGoBackN, PacketKind::kAck, 3, 0},
                      LossCase{Recovery::kSelectiveRepeat, PacketKind::kAck, 3, 0},
                      LossCase{Recovery::kGoBackN, PacketKind::kAck, 24, 1},
                      LossCase{Recovery::kSelectiveRepeat, PacketKind::kAck, 24, 1},
                      LossCase{Recovery::kGoBackN, PacketKind::kNack, 0, 1},
                      LossCase{Recovery::kSelectiveRepeat, PacketKind::kNack, 0, 1}));

TEST_F(RdmaSelectiveTest, ALostLastPacketCostsTheTimerWithTheProbabilityOfItsLoss) {
  // One message after another, each of one packet, whose last is lost with probability p: the mean
  // time of a message is that of one without loss and p x T more, geometric for repeated losses.
  NicSettings nic;
  nic.ib_timeout = 5;
  Connect(nic);
  constexpr double kLoss = 0.05;
  constexpr int kMessages = 20'000;
  network().SetLossFilter(out_, [draw = uint64_t{0}](const Packet& packet) mutable {
    return packet.kind == PacketKind::kNetworkData &&
           static_cast<double>(Mix64(++draw) >> 11) * 0x1p-53 < kLoss;
  });
  on_completed_ = [&](uint32_t) {
    if (completed_.size() < kMessages) Post(1);
  };
  Post(1);
  engine().Run();
  ASSERT_THAT(completed_, SizeIs(kMessages));
  const auto round_ps = static_cast<double>(RunPs(kFirstPs, 1) + kAckPathPs);
  const double mean_ps = static_cast<double>(completed_.back().time_ps) / kMessages;
  const double tries = kLoss / (1 - kLoss);
  const double deviation = std::sqrt(kLoss / kMessages) / (1 - kLoss);
  EXPECT_NEAR((mean_ps - round_ps) / static_cast<double>(timeout_ps_), tries, 4 * deviation);
}

}  // namespace
}  // namespace railyard
