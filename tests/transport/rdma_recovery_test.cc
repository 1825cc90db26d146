// SPDX-License-Identifier: GPL-2.0-only
// Queue pairs on links that are cut: which packets are lost, who notices, when each is sent again.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/string.h>

#include "simulator/transport/congestion/registered_control.h"
#include "simulator/transport/rdma/rdma_transport.h"
#include "tests/transport/rdma_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kPackets = 16;

class RdmaRecoveryTest : public testing::RdmaFixture {
 protected:
  // Returns when the NACK for packet k of a message of kPackets is back: k+1 finds both wires idle.
  static int64_t NackBackPs(int64_t k) {
    return WireStartPs(k + 1) + 2 * (kFullPs + kWireDelayPs) + kLeafForwardPs + kAckPathPs;
  }
  // Returns when the network sees that what left the first NIC's wire at `end_ps` is lost.
  static int64_t LostPs(int64_t end_ps) { return end_ps + kWireDelayPs + kLeafForwardPs; }

  void PostMessage() { rdma_->Post(queue_pair_, PostedMessage::OfData(kPackets * kMtu)); }
  // Down for one picosecond while an ACK or NACK sent at `sent_ps` is on its first wire.
  void LoseAckOnce(int64_t sent_ps) { Down(ack_out_, sent_ps + 500, sent_ps + 501); }

  void ExpectCounts(uint64_t out_of_sequence, uint64_t duplicates, uint64_t retransmitted,
                    uint64_t nacks, uint64_t timeouts) {
    EXPECT_EQ(Drops(DropReason::kOutOfSequence), out_of_sequence);
    EXPECT_EQ(Drops(DropReason::kDuplicate), duplicates);
    EXPECT_EQ(rdma_->counters().retransmitted_packets, retransmitted);
    EXPECT_EQ(rdma_->counters().nacks, nacks);
    EXPECT_EQ(rdma_->counters().timeouts, timeouts);
    EXPECT_EQ(network().live_packets(), 0u);
    ExpectConservation();
  }
};

// --- Lost data -----------------------------------------------------------------------------------

class RdmaGapTest : public RdmaRecoveryTest, public ::testing::WithParamInterface<int64_t> {};

TEST_P(RdmaGapTest, APacketLostInTheMiddleIsSentAgainWithAllBehindItWhenTheNackIsBack) {
  const int64_t k = GetParam();
  Connect({});
  LosePacketOnce(k);
  PostMessage();
  engine().Run();
  const int64_t nack_ps = NackBackPs(k);
  const int64_t first_ps = k == 0 ? kFirstPs : kFullPs;
  EXPECT_THAT(lost_, ElementsAre(ReportedLoss{LostPs(WireStartPs(k) + first_ps), 7, out_}));
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{nack_ps, 7}));
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{nack_ps + RunPs(first_ps, kPackets - k) + WritePs(kFullPs), 7}));
  const int64_t completed_ps = nack_ps + RunPs(first_ps, kPackets - k) + kAckPathPs;
  EXPECT_THAT(completed_, ElementsAre(Reported{completed_ps, 7}));
  EXPECT_THAT(recovered_, ElementsAre(Reported{completed_ps, 7}));
  EXPECT_THAT(errors_, IsEmpty());
  const auto behind = static_cast<uint64_t>(kPackets - 1 - k);
  ExpectCounts(behind, 0, behind + 1, 1, 0);
  // Bytes that crossed the wire twice are counted as such; lost packets did not cross it.
  EXPECT_EQ(network().CountersOfLink(out_).payload_bytes, (kPackets - 1) * kMtu);
  EXPECT_EQ(network().CountersOfLink(out_).retransmitted_bytes, (behind + 1) * kMtu);
  EXPECT_EQ(network().counters().delivered_bytes, kPackets * kMtu);
}

INSTANTIATE_TEST_SUITE_P(AllButTheLast, RdmaGapTest, ::testing::Range<int64_t>(0, kPackets - 1));

// --- The knee: flaps within a window and beyond it -----------------------------------------------

// A flap takes packet k and what follows it. It is asked for by the first packet behind the flap as
// long as the window, which k holds open, lets one follow; else nothing shows the gap but the
// timer.
class RdmaFlapTest : public RdmaRecoveryTest, public ::testing::WithParamInterface<int64_t> {};

TEST_P(RdmaFlapTest, AFlapShorterThanTheWindowIsNackedAndALongerOneWaitsForTheTimer) {
  constexpr int64_t kWindowPackets = 128;  // more than a round trip's: the wire is never idle
  constexpr int64_t kLost = 150;
  constexpr int64_t kLong = 400;
  const int64_t flapped = GetParam();  // packets
  // An ACK for each packet: the window counts from the gap itself.
  Connect({.window_bytes = kWindowPackets * kMtu, .ack_every_packets = 1, .ib_timeout = 10});
  Down(out_, WireStartPs(kLost) + kFullPs / 2, WireStartPs(kLost + flapped) - kFullPs / 2 + 1);
  rdma_->Post(queue_pair_, PostedMessage::OfData(kLong * kMtu));
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(1));
  EXPECT_THAT(errors_, IsEmpty());
  const bool is_seen = flapped < kWindowPackets;
  EXPECT_EQ(rdma_->counters().nacks, is_seen ? 1u : 0u);
  EXPECT_EQ(rdma_->counters().timeouts, is_seen ? 0u : 1u);
  ASSERT_THAT(recovered_, SizeIs(1));
  ASSERT_THAT(retransmitted_, SizeIs(1));
  if (is_seen) {
    // The NACK may follow upon an ACK.
    EXPECT_NEAR(static_cast<double>(retransmitted_[0].time_ps),
                static_cast<double>(NackBackPs(kLost + flapped - 1)), 2.0 * kAckPs);
  } else {
    // From the ACK of what was before the gap.
    const int64_t progress_ps = RunPs(kFirstPs, kLost) + kAckPathPs;
    EXPECT_NEAR(static_cast<double>(retransmitted_[0].time_ps),
                static_cast<double>(progress_ps + timeout_ps_), 2.0 * kFullPs);
  }
  ExpectConservation();
}

INSTANTIATE_TEST_SUITE_P(AroundTheWindow, RdmaFlapTest,
                         ::testing::Values(1, 16, 127, 128, 129, 200));

TEST_F(RdmaRecoveryTest, TheLastPacketLostIsSentAgainByTheTimerOfTheLastProgress) {
  Connect({.ack_every_packets = 4, .ib_timeout = 14});
  LosePacketOnce(kPackets - 1);
  PostMessage();
  engine().Run();
  // The ACK for packets 8 to 11 started the timer anew; 12 to 14 had arrived, unknown to it.
  const int64_t again_ps = RunPs(kFirstPs, 12) + kAckPathPs + timeout_ps_;
  EXPECT_EQ(timeout_ps_, int64_t{4'096'000} * 16'384);
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{again_ps, 7}));
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{again_ps + RunPs(kFullPs, 4) + WritePs(kFullPs), 7}));
  EXPECT_THAT(recovered_, ElementsAre(Reported{again_ps + RunPs(kFullPs, 4) + kAckPathPs, 7}));
  ExpectCounts(0, 3, 4, 0, 1);
}

class RdmaTimeoutTest : public RdmaRecoveryTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(RdmaTimeoutTest, AnOnlyPacketLostIsSentAgainAfterTheLocalAckTimeout) {
  Connect({.ib_timeout = GetParam()});
  constexpr int64_t kPostedPs = 1'234'567;
  LosePacketOnce(0, kPostedPs);
  At(kPostedPs, [this] { rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu)); });
  engine().Run();
  const int64_t again_ps = kPostedPs + (int64_t{4'096'000} << GetParam());
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{again_ps, 7}));
  EXPECT_THAT(delivered_, ElementsAre(Reported{again_ps + MessagePs(1), 7}));
  ExpectCounts(0, 0, 1, 0, 1);
}

INSTANTIATE_TEST_SUITE_P(Exponents, RdmaTimeoutTest, ::testing::Values(1, 5, 14, 18, 20, 22));

TEST_F(RdmaRecoveryTest, TwoGapsInOneFlightMakeOneNackAndOneRepetition) {
  Connect({});
  LosePacketOnce(3);
  LosePacketOnce(9);
  PostMessage();
  engine().Run();
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{NackBackPs(3) + RunPs(kFullPs, 13) + WritePs(kFullPs), 7}));
  EXPECT_THAT(lost_, SizeIs(2));
  EXPECT_THAT(recovered_, SizeIs(1));
  ExpectCounts(11, 0, 13, 1, 0);
}

TEST_F(RdmaRecoveryTest, ARepetitionLostAgainWaitsForTheTimerBecauseAGapIsNackedOnce) {
  Connect({.ib_timeout = 5});
  LosePacketOnce(5);
  const int64_t nack_ps = NackBackPs(5);
  const int64_t cut_ps = nack_ps + ReadPs(kFullPs) + kFullPs / 2;
  Down(out_, cut_ps, cut_ps + 1);
  PostMessage();
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{
                              nack_ps + timeout_ps_ + RunPs(kFullPs, 11) + WritePs(kFullPs), 7}));
  ExpectCounts(20, 0, 22, 1, 1);
  EXPECT_THAT(retransmitted_, SizeIs(1));
  EXPECT_THAT(recovered_, SizeIs(1));
}

TEST_F(RdmaRecoveryTest, OneLossAfterAnotherIsRecoveredIsReportedAnew) {
  Connect({});
  LosePacketOnce(5);
  constexpr int64_t kSecondPs = 50'000'000;
  LosePacketOnce(2, kSecondPs);
  PostMessage();
  At(kSecondPs, [this] { PostMessage(); });
  engine().Run();
  EXPECT_THAT(retransmitted_,
              ElementsAre(Reported{NackBackPs(5), 7}, Reported{kSecondPs + NackBackPs(2), 7}));
  EXPECT_THAT(recovered_, SizeIs(2));
  ExpectCounts(10 + 13, 0, 11 + 14, 2, 0);
}

// --- Lost control packets ------------------------------------------------------------------------

TEST_F(RdmaRecoveryTest, ALostAckRepeatsAllItWasForAndDuplicatesAreAcknowledgedAgain) {
  Connect({.ack_every_packets = 4, .ib_timeout = 5});
  LoseAckOnce(RunPs(kFirstPs, 4));
  rdma_->Post(queue_pair_, PostedMessage::OfData(4 * kMtu));
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{MessagePs(4), 7}));
  EXPECT_THAT(completed_, ElementsAre(Reported{timeout_ps_ + RunPs(kFirstPs, 4) + kAckPathPs, 7}));
  EXPECT_THAT(recovered_, ElementsAre(completed_[0]));
  ExpectCounts(0, 4, 4, 0, 1);
  EXPECT_EQ(network().counters().delivered_bytes, 4u * kMtu);
}

TEST_F(RdmaRecoveryTest, ALostAckIsMadeGoodByALaterOneWithoutARepetition) {
  Connect({.ack_every_packets = 4});
  LoseAckOnce(RunPs(kFirstPs, 4));
  rdma_->Post(queue_pair_, PostedMessage::OfData(8 * kMtu));
  engine().Run();
  EXPECT_THAT(completed_, ElementsAre(Reported{RunPs(kFirstPs, 8) + kAckPathPs, 7}));
  EXPECT_THAT(recovered_, ElementsAre(completed_[0]));
  EXPECT_THAT(retransmitted_, IsEmpty());
  ExpectCounts(0, 0, 0, 0, 0);
}

TEST_F(RdmaRecoveryTest, AWindowOfDuplicatesThatEndsNoMessageIsAcknowledgedAgain) {
  // The window is full with four packets of eight; their one ACK is lost.
  Connect({.window_bytes = 4 * kMtu, .ack_every_packets = 4, .ib_timeout = 5});
  LoseAckOnce(RunPs(kFirstPs, 4));
  rdma_->Post(queue_pair_, PostedMessage::OfData(8 * kMtu));
  engine().Run();
  const int64_t known_ps = timeout_ps_ + RunPs(kFirstPs, 4) + kAckPathPs;
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{known_ps + RunPs(kFullPs, 4) + WritePs(kFullPs), 7}));
  EXPECT_THAT(errors_, IsEmpty());
  ExpectCounts(0, 4, 4, 0, 1);
}

TEST_F(RdmaRecoveryTest, ALostNackLeavesTheRepetitionToTheTimer) {
  Connect({.ack_every_packets = 4, .ib_timeout = 5});
  LosePacketOnce(5);
  LoseAckOnce(NackBackPs(5) - kAckPathPs);
  PostMessage();
  engine().Run();
  // The timer runs from the ACK of packets 0 to 3; packet 4 is repeated needlessly.
  const int64_t again_ps = RunPs(kFirstPs, 4) + kAckPathPs + timeout_ps_;
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{again_ps, 7}));
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{again_ps + RunPs(kFullPs, 12) + WritePs(kFullPs), 7}));
  EXPECT_THAT(lost_, ElementsAre(ReportedLoss{LostPs(WireStartPs(5) + kFullPs), 7, out_},
                                 ReportedLoss{NackBackPs(5) - kAckPs - kWireDelayPs, 7, ack_out_}));
  ExpectCounts(10, 1, 12, 1, 1);
}

TEST_F(RdmaRecoveryTest, ALostClearToSendIsSentAgainByItsOwnTimer) {
  Connect({.ib_timeout = 14});
  Down(ack_out_, 1'000, 1'001);
  rdma_->Grant(queue_pair_, true);
  engine().Run();
  constexpr int64_t kPathPs = 2 * (kClearToSendPs + kWireDelayPs) + kLeafForwardPs;
  EXPECT_THAT(clear_to_send_, ElementsAre(Reported{timeout_ps_ + kPathPs, 7}));
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{timeout_ps_, 7}));
  EXPECT_THAT(recovered_, ElementsAre(Reported{timeout_ps_ + kPathPs + kAckPathPs, 7}));
  ExpectCounts(0, 0, 1, 0, 1);
}

// The data's loss is repaired long before.
TEST_F(RdmaRecoveryTest, AConnectionHasRecoveredWhenItsDataAndItsClearToSendHave) {
  Connect({.ib_timeout = 14});
  Down(ack_out_, 1'000, 1'001);
  LosePacketOnce(3);
  rdma_->Grant(queue_pair_, true);
  PostMessage();
  const int64_t nack_ps = NackBackPs(3);
  At(nack_ps + RunPs(kFullPs, kPackets - 3) + kAckPathPs + 1,
     [&] { EXPECT_TRUE(rdma_->HasUnrepairedLoss(queue_pair_)); });
  engine().Run();
  constexpr int64_t kPathPs = 2 * (kClearToSendPs + kWireDelayPs) + kLeafForwardPs;
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{nack_ps, 7}, Reported{timeout_ps_, 7}));
  EXPECT_THAT(completed_, SizeIs(1));
  EXPECT_THAT(recovered_, ElementsAre(Reported{timeout_ps_ + kPathPs + kAckPathPs, 7}));
  EXPECT_FALSE(rdma_->HasUnrepairedLoss(queue_pair_));
}

TEST_F(RdmaRecoveryTest, AClearToSendWhoseAckIsLostIsGrantedOnce) {
  Connect({.ib_timeout = 14});
  // Its ACK goes the way of the data.
  constexpr int64_t kPathPs = 2 * (kClearToSendPs + kWireDelayPs) + kLeafForwardPs;
  Down(out_, kPathPs + 500, kPathPs + 501);
  rdma_->Grant(queue_pair_, true);
  engine().Run();
  EXPECT_THAT(clear_to_send_, ElementsAre(Reported{kPathPs, 7}));
  ExpectCounts(0, 1, 1, 0, 1);
}

// --- Retries -------------------------------------------------------------------------------------

struct RetryCase {
  uint32_t ib_timeout;
  uint32_t retry_cnt;
  int64_t error_ps;  // after the post
};
class RdmaRetryTest : public RdmaRecoveryTest, public ::testing::WithParamInterface<RetryCase> {};

TEST_P(RdmaRetryTest, TheQueuePairBreaksWhenItsRetriesAreUsedUp) {
  const RetryCase& given = GetParam();
  Connect({.ib_timeout = given.ib_timeout, .ib_retry_cnt = given.retry_cnt});
  EXPECT_EQ(given.error_ps, (given.retry_cnt + 1) * timeout_ps_);
  Down(out_, 0, kNeverPs);
  constexpr int64_t kPostedPs = 12'345;
  At(kPostedPs, [this] { rdma_->Post(queue_pair_, PostedMessage::OfData(3 * kMtu)); });
  engine().Run();
  EXPECT_THAT(errors_, ElementsAre(ReportedError{
                           kPostedPs + given.error_ps, 7,
                           "IBV_WC_RETRY_EXC_ERR(12) on server0/nic0 -> server1/nic0 (3 data "
                           "packets and 0 clear-to-send unacknowledged)"}));
  EXPECT_EQ(rdma_->counters().queue_pair_errors, 1u);
  EXPECT_THAT(delivered_, IsEmpty());
  EXPECT_THAT(recovered_, IsEmpty());
  EXPECT_THAT(lost_, SizeIs(3 * (given.retry_cnt + 1)));
  ExpectCounts(0, 0, uint64_t{3} * given.retry_cnt, 0, given.retry_cnt + 1);
}

INSTANTIATE_TEST_SUITE_P(Settings, RdmaRetryTest,
                         ::testing::Values(RetryCase{1, 0, 8'192'000}, RetryCase{1, 7, 65'536'000},
                                           RetryCase{5, 3, 524'288'000},
                                           RetryCase{14, 7, 536'870'912'000},
                                           RetryCase{20, 0, 4'294'967'296'000},
                                           RetryCase{20, 7, 34'359'738'368'000}));

// Sends a packet every 100 us.
class SlowPace : public QueuePairControl {
 public:
  SlowPace() { SetLimits({.rate_bps = 8 * kFullPacketWireBytes * 10'000}); }
  static constexpr uint64_t kFullPacketWireBytes = 1'106;
};

// The timer of 8 us is that of the packet sent last. While the packet waits for its turn to be sent
// again, no try is under way that could fail.
TEST_F(RdmaRecoveryTest, WaitingForThePaceIsNoTry) {
  RegisterCongestionControl(
      "slow pace", {}, [](const ControlledQueuePair&) { return std::make_unique<SlowPace>(); });
  NicSettings nic{.ack_every_packets = 1, .ib_timeout = 1, .ib_retry_cnt = 2};
  nic.congestion_control.SetTypeId(RegisteredControl::GetTypeId());
  nic.congestion_control.Set("Name", ns3::StringValue("slow pace"));
  Connect(nic);
  rdma_->Post(queue_pair_, PostedMessage::OfData(4 * kMtu));
  Down(out_, 199 * kPsPerUs, 210 * kPsPerUs);  // takes the third packet
  engine().Run();
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(delivered_, SizeIs(1));
  EXPECT_EQ(rdma_->counters().timeouts, 1u);
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 1u);
}

TEST_F(RdmaRecoveryTest, RetriesAreCountedFromTheLastProgress) {
  Connect({.ack_every_packets = 4, .ib_timeout = 14, .ib_retry_cnt = 2});
  Down(out_, WireStartPs(12) + kFullPs / 2, kNeverPs);
  PostMessage();
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].time_ps, RunPs(kFirstPs, 12) + kAckPathPs + 3 * timeout_ps_);
  ExpectCounts(0, 0, uint64_t{2} * 4, 0, 3);
}

TEST_F(RdmaRecoveryTest, ProgressGivesAllRetriesBack) {
  Connect({.ib_timeout = 5, .ib_retry_cnt = 1});
  constexpr int64_t kMessages = 5;
  for (int64_t m = 0; m < kMessages; ++m) {
    const int64_t posted_ps = m * 1'000'000'000;
    LosePacketOnce(0, posted_ps);
    At(posted_ps, [this] { rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu)); });
  }
  engine().Run();
  EXPECT_THAT(errors_, IsEmpty());
  ASSERT_THAT(delivered_, SizeIs(kMessages));
  EXPECT_EQ(delivered_.back().time_ps, 4'000'000'000 + timeout_ps_ + MessagePs(1));
  ExpectCounts(0, 0, kMessages, 0, kMessages);
}

TEST_F(RdmaRecoveryTest, WithoutRetriesANackForTheFirstPacketBreaksTheQueuePair) {
  Connect({.ib_retry_cnt = 0});
  LosePacketOnce(0);
  PostMessage();
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].time_ps, NackBackPs(0));
  EXPECT_THAT(errors_[0].why, StartsWith("IBV_WC_RETRY_EXC_ERR(12) on server0/nic0"));
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 0u);
}

TEST_F(RdmaRecoveryTest, ABrokenQueuePairSendsNothingMoreAndLeavesOthersAlone) {
  Connect({.ib_timeout = 1, .ib_retry_cnt = 0});
  const FlowId other = Open(8, GpuIndex{0}, GpuIndex{1}, 5);
  Down(out_, 0, 5'000'000);
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  At(20'000'000, [&] {
    rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
    rdma_->Post(other, PostedMessage::OfData(kMtu));
  });
  engine().Run();
  EXPECT_THAT(errors_, SizeIs(1));
  EXPECT_THAT(delivered_, ElementsAre(Reported{20'000'000 + MessagePs(1), 8}));
  EXPECT_EQ(network().counters().packets, 2u);
}

// --- Between the NIC and memory ------------------------------------------------------------------

constexpr const char* kAcceptedLost =
    "a packet acknowledged to its sender was lost on server1/nic0>server1/gpu0";

TEST_F(RdmaRecoveryTest, APacketLostOnItsWayToMemoryBreaksTheConnection) {
  Connect({});
  const int64_t at_nic_ps = RunPs(kFirstPs, 1);
  Down(to_memory_, at_nic_ps + 100, at_nic_ps + 101);
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  engine().Run();
  const int64_t lost_ps = at_nic_ps + WritePs(kFirstPs);
  EXPECT_THAT(lost_, ElementsAre(ReportedLoss{lost_ps, 7, to_memory_}));
  EXPECT_THAT(errors_, ElementsAre(ReportedError{lost_ps, 7, kAcceptedLost}));
  EXPECT_THAT(delivered_, IsEmpty());
  ExpectCounts(0, 0, 0, 0, 0);
}

TEST_F(RdmaRecoveryTest, ItDoesSoAlsoWhereItsAckMadeThePoolOfPacketsGrow) {
  Connect({});
  const int64_t at_nic_ps = RunPs(kFirstPs, 1);
  Down(to_memory_, at_nic_ps + 100, at_nic_ps + 101);
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  // The pool starts with 4,096 packets: all but the message's own are taken, so its ACK is one
  // more.
  std::vector<PacketId> taken;
  At(at_nic_ps, [&] {
    while (network().live_packets() < 4'096) taken.push_back(network().AllocatePacket());
  });
  engine().Run();
  EXPECT_THAT(errors_, ElementsAre(ReportedError{at_nic_ps + WritePs(kFirstPs), 7, kAcceptedLost}));
  EXPECT_EQ(network().live_packets(), taken.size());
}

// --- Routes --------------------------------------------------------------------------------------

TEST_F(RdmaRecoveryTest, WithoutARouteEveryTryIsLostAtOnceUntilRetriesAreUsedUp) {
  Connect({.ib_timeout = 5, .ib_retry_cnt = 3});
  routing_->SetLinkUp(out_, false);
  rdma_->OnRoutesChanged();
  EXPECT_TRUE(rdma_->LinksOf(queue_pair_).empty());
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  engine().Run();
  EXPECT_THAT(lost_, ElementsAre(ReportedLoss{0, 7, LinkId::kNone},
                                 ReportedLoss{timeout_ps_, 7, LinkId::kNone},
                                 ReportedLoss{2 * timeout_ps_, 7, LinkId::kNone},
                                 ReportedLoss{3 * timeout_ps_, 7, LinkId::kNone}));
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].time_ps, 4 * timeout_ps_);
  EXPECT_EQ(Drops(DropReason::kNoRoute), 4u);
}

TEST_F(RdmaRecoveryTest, ARouteThatComesBackIsUsedByTheNextTry) {
  Connect({.ib_timeout = 5, .ib_retry_cnt = 3});
  routing_->SetLinkUp(out_, false);
  rdma_->OnRoutesChanged();
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  At(timeout_ps_ + 1, [this] {
    routing_->SetLinkUp(out_, true);
    rdma_->OnRoutesChanged();
  });
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{2 * timeout_ps_ + MessagePs(1), 7}));
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{timeout_ps_, 7}));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(RdmaRecoveryTest, AReceiverWithoutARouteBackLosesItsAcks) {
  Connect({.ib_timeout = 5, .ib_retry_cnt = 1});
  routing_->SetLinkUp(ack_out_, false);
  rdma_->OnRoutesChanged();
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{MessagePs(1), 7}));
  EXPECT_THAT(completed_, IsEmpty());
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].time_ps, 2 * timeout_ps_);
  ExpectCounts(0, 1, 1, 0, 2);
}

}  // namespace
}  // namespace railyard
