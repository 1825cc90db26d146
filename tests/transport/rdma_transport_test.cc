// SPDX-License-Identifier: GPL-2.0-only
// Queue pairs on a fabric that loses nothing: times, ACKs, windows, turns.
#include "simulator/transport/rdma/rdma_transport.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/rdma_fixture.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

using RdmaTransportTest = testing::RdmaFixture;

// --- One message -------------------------------------------------------------------------------

TEST_F(RdmaTransportTest, AMessageOfOnePacketTakesReadWireAndWrite) {
  Connect({});
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  engine().Run();
  // 1,122 B: read 17,952 + 100,000 + 200,000; wire 22,440 + 1,000; leaf 500,000; wire 22,440 +
  // 1,000; write 17,952 + 100,000.
  EXPECT_THAT(delivered_, ElementsAre(Reported{982'784, 7}));
  EXPECT_EQ(MessagePs(1), 982'784);
  EXPECT_THAT(completed_, ElementsAre(Reported{RunPs(kFirstPs, 1) + kAckPathPs, 7}));
}

TEST_F(RdmaTransportTest, AMessageOfManyPacketsKeepsTheWireBusyFromItsFirstToItsLast) {
  // 500 packets take 11 us, many round trips of 1.5 us: the window of 512 packets never closes.
  for (const int64_t packets : {2, 16, 500}) {
    SCOPED_TRACE(packets);
    graph_ = FabricGraph();
    TearDown();
    RdmaTransportTest::SetUp();
    delivered_.clear();
    Connect({});
    rdma_->Post(queue_pair_, PostedMessage::OfData(static_cast<uint64_t>(packets) * kMtu));
    engine().Run();
    EXPECT_THAT(delivered_, ElementsAre(Reported{MessagePs(packets), 7}));
  }
}

TEST_F(RdmaTransportTest, AMessageWithoutPayloadIsItsImmediateAlone) {
  Connect({});
  rdma_->Post(queue_pair_, PostedMessage::OfData(0));
  engine().Run();
  constexpr int64_t kImmediatePs = (82 + 16) * kWireBytePs;
  EXPECT_THAT(delivered_, ElementsAre(Reported{RunPs(kImmediatePs, 1) + WritePs(kImmediatePs), 7}));
  EXPECT_EQ(network().CountersOfLink(out_).header_bytes, 98u);
  EXPECT_EQ(network().CountersOfLink(out_).payload_bytes, 0u);
}

TEST_F(RdmaTransportTest, AShortLastPacketWaitsForTheOneBeforeItToBeWritten) {
  Connect({});
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu + 1));
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{MessagePs(1) + (1 + 82) * kHostBytePs, 7}));
}

TEST_F(RdmaTransportTest, WireBytesAreWhatCrossesTheWire) {
  Connect({});
  const PacketFraming framing = RdmaFraming({});
  EXPECT_EQ(framing.WireBytes(0, kMtu), 98u);
  EXPECT_EQ(framing.WireBytes(1, kMtu), 99u);
  EXPECT_EQ(framing.WireBytes(kMtu, kMtu), kMtu + 98u);
  EXPECT_EQ(framing.WireBytes(kMtu + 1, kMtu), kMtu + 1 + 98u + 82u);
  rdma_->Post(queue_pair_, PostedMessage::OfData(100'000));  // 98 packets
  engine().Run();
  for (const LinkId link : {out_, down_, to_memory_}) {
    const LinkCounters counters = network().CountersOfLink(link);
    EXPECT_EQ(counters.payload_bytes, 100'000u);
    EXPECT_EQ(counters.header_bytes, 98 * 82u + 16u);
    EXPECT_EQ(counters.payload_bytes + counters.header_bytes, framing.WireBytes(100'000, kMtu));
    EXPECT_EQ(counters.packets, 98u);
  }
  EXPECT_EQ(network().counters().delivered_bytes, 100'000u);
  EXPECT_EQ(network().live_packets(), 0u);
}

// InfiniBand Architecture Specification: LRH 8, BTH 12, RETH 16, AETH 4, ICRC 4, VCRC 2.
TEST_F(RdmaTransportTest, InInfinibandPacketsHaveItsHeaders) {
  NicSettings nic;
  nic.is_infiniband = true;
  Connect(nic);
  EXPECT_EQ(RdmaFraming(nic).WireBytes(kMtu, kMtu), kMtu + 26u + 16u);
  rdma_->Post(queue_pair_,
              PostedMessage::OfData(100'000));  // 98 packets, an ACK for every fourth and the last
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(out_).header_bytes, 98 * 26u + 16u);
  EXPECT_EQ(network().CountersOfLink(ack_out_).header_bytes, 25 * (26u + 4u));
}

TEST_F(RdmaTransportTest, MessagesOfOneQueueFollowEachOtherOnTheWire) {
  Connect({});
  rdma_->Post(queue_pair_, PostedMessage::OfData(2 * kMtu));
  rdma_->Post(queue_pair_, PostedMessage::OfData(2 * kMtu));
  engine().Run();
  // Four packets back to back, the third with the headers of a first one.
  EXPECT_THAT(delivered_, ElementsAre(Reported{MessagePs(2), 7},
                                      Reported{MessagePs(2) + kFirstPs + kFullPs, 7}));
}

// --- Acknowledgements ----------------------------------------------------------------------------

struct AckCase {
  uint32_t every;
  int64_t packets;
  uint64_t acks;
};
class RdmaAckTest : public testing::RdmaFixture, public ::testing::WithParamInterface<AckCase> {};

TEST_P(RdmaAckTest, EveryNthPacketAndEveryMessagesLastEarnAnAck) {
  Connect({.ack_every_packets = GetParam().every});
  rdma_->Post(queue_pair_, PostedMessage::OfData(static_cast<uint64_t>(GetParam().packets) * kMtu));
  engine().Run();
  for (const LinkId link : {ack_out_, ack_down_}) {
    EXPECT_EQ(network().CountersOfLink(link).packets, GetParam().acks);
    EXPECT_EQ(network().CountersOfLink(link).header_bytes, GetParam().acks * 86);
  }
  EXPECT_THAT(completed_,
              ElementsAre(Reported{RunPs(kFirstPs, GetParam().packets) + kAckPathPs, 7}));
}

INSTANTIATE_TEST_SUITE_P(Counts, RdmaAckTest,
                         ::testing::Values(AckCase{1, 10, 10}, AckCase{4, 10, 3}, AckCase{4, 8, 2},
                                           AckCase{4, 3, 1}, AckCase{16, 100, 7}));

TEST_F(RdmaTransportTest, TheLastPacketOfAMessageStartsTheCountAnew) {
  Connect({.ack_every_packets = 4});
  // 3 + 3 + 5 packets: ACKs at the ends, and after the fourth of five.
  for (const uint64_t packets : {3u, 3u, 5u})
    rdma_->Post(queue_pair_, PostedMessage::OfData(packets * kMtu));
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(ack_down_).packets, 4u);
  EXPECT_EQ(completed_.size(), 3u);
}

// --- Windows -------------------------------------------------------------------------------------

TEST_F(RdmaTransportTest, AWindowOfOnePacketSendsOnePerRoundTrip) {
  Connect({.window_bytes = kMtu, .ack_every_packets = 1});
  rdma_->Post(queue_pair_, PostedMessage::OfData(10 * kMtu));
  engine().Run();
  const int64_t first_round_ps = RunPs(kFirstPs, 1) + kAckPathPs;
  const int64_t round_ps = RunPs(kFullPs, 1) + kAckPathPs;
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{
                  first_round_ps + 8 * round_ps + RunPs(kFullPs, 1) + WritePs(kFullPs), 7}));
}

TEST_F(RdmaTransportTest, ThroughputIsWindowOverRoundTripWhereTheWindowIsBelowTheirProduct) {
  // Four packets go out together and one ACK for them comes back.
  Connect({.window_bytes = 4 * kMtu, .ack_every_packets = 4});
  rdma_->Post(queue_pair_, PostedMessage::OfData(40 * kMtu));
  engine().Run();
  const int64_t first_round_ps = RunPs(kFirstPs, 4) + kAckPathPs;
  const int64_t round_ps = RunPs(kFullPs, 4) + kAckPathPs;
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{
                  first_round_ps + 8 * round_ps + RunPs(kFullPs, 4) + WritePs(kFullPs), 7}));
}

TEST_F(RdmaTransportTest, NoMoreThanTheWindowIsEverUnacknowledged) {
  Connect({.window_bytes = 6 * kMtu + 1'000, .ack_every_packets = 4});
  rdma_->Post(queue_pair_, PostedMessage::OfData(60 * kMtu));
  uint64_t most_bytes = 0;
  for (int64_t time_ps = 0; time_ps < 20'000'000; time_ps += 10'000) {
    At(time_ps, [&] {
      most_bytes = std::max(most_bytes, network().InFlightBytes());
      // ACKs of 4 packets each came back for these 60: no more than 6 packets beyond them have left
      // the NIC.
      const uint64_t acks = network().CountersOfLink(ack_down_).packets;
      EXPECT_LE(network().counters().packets, 4 * acks + 6);
    });
  }
  engine().Run();
  EXPECT_EQ(most_bytes, 6u * kMtu);
  EXPECT_EQ(delivered_.size(), 1u);
}

TEST_F(RdmaTransportTest, AWindowBelowOneMtuStillSendsOnePacketAtATime) {
  Connect({.window_bytes = 1, .ack_every_packets = 1});
  rdma_->Post(queue_pair_, PostedMessage::OfData(2 * kMtu));
  engine().Run();
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{
                  RunPs(kFirstPs, 1) + kAckPathPs + RunPs(kFullPs, 1) + WritePs(kFullPs), 7}));
}

// --- Turns ---------------------------------------------------------------------------------------

TEST_F(RdmaTransportTest, TwoQueuePairsOfANicTakeTurnsPacketByPacket) {
  Connect({});
  const FlowId other = Open(8, GpuIndex{0}, GpuIndex{1}, 5);
  rdma_->Post(queue_pair_, PostedMessage::OfData(50 * kMtu));
  rdma_->Post(other, PostedMessage::OfData(50 * kMtu));
  engine().Run();
  // The wire is busy throughout with the packets of both; the first ends one packet earlier.
  const int64_t last_ps = MessagePs(99) + kFirstPs;
  EXPECT_THAT(delivered_, ElementsAre(Reported{last_ps - kFullPs, 7}, Reported{last_ps, 8}));
}

TEST_F(RdmaTransportTest, AQueuePairThatComesLaterGetsItsHalfFromThenOn) {
  Connect({});
  const FlowId other = Open(8, GpuIndex{0}, GpuIndex{1}, 5);
  rdma_->Post(queue_pair_, PostedMessage::OfData(300 * kMtu));
  // 100 packets have been read when the other one's 20 begin: they end after 40 turns.
  const int64_t posted_ps = kFirstPs + 99 * kFullPs - 1;
  At(posted_ps, [&] { rdma_->Post(other, PostedMessage::OfData(20 * kMtu)); });
  engine().Run();
  const int64_t last_ps = MessagePs(319) + kFirstPs;
  ASSERT_EQ(delivered_.size(), 2u);
  EXPECT_EQ(delivered_[1], (Reported{last_ps, 7}));
  EXPECT_EQ(delivered_[0].connection, 8u);
  EXPECT_NEAR(static_cast<double>(delivered_[0].time_ps),
              static_cast<double>(MessagePs(139) + kFirstPs), kFirstPs);
}

TEST_F(RdmaTransportTest, AClearToSendTakesItsTurnWithTheDataOfItsNic) {
  Connect({});
  const FlowId back = Open(9, GpuIndex{1}, GpuIndex{0}, 5);
  rdma_->Post(back, PostedMessage::OfData(100 * kMtu));
  rdma_->Grant(queue_pair_, true);
  engine().Run();
  // Second in turn, and not read over the host link: it overtakes the packet read before it.
  EXPECT_THAT(
      clear_to_send_,
      ElementsAre(Reported{kFirstPs + 2 * (kClearToSendPs + kWireDelayPs) + kLeafForwardPs, 7}));
}

TEST_F(RdmaTransportTest, AClearToSendElementGoesFromNicToNic) {
  Connect({});
  rdma_->Grant(queue_pair_, true);
  engine().Run();
  // 64 + 82 + 16 = 162 B on two wires.
  EXPECT_THAT(clear_to_send_, ElementsAre(Reported{2 * (3'240 + 1'000) + 500'000, 7}));
  EXPECT_THAT(delivered_, IsEmpty());
  EXPECT_THAT(completed_, IsEmpty());
  EXPECT_EQ(network().counters().injected_bytes, 0u);
  EXPECT_EQ(network().CountersOfLink(ack_out_).header_bytes, 162u);
  EXPECT_EQ(network().CountersOfLink(out_).packets, 1u);  // its ACK
}

TEST_F(RdmaTransportTest, QueuesAndTheirConnectionsAreNumberedByQueuePair) {
  Connect({});
  EXPECT_EQ(Open(8, GpuIndex{1}, GpuIndex{0}, 5), 1u);
  EXPECT_EQ(rdma_->queue_pair_count(), 2u);
  EXPECT_EQ(rdma_->UserOf(QueueId{0}).number, 7u);
  EXPECT_EQ(rdma_->UserOf(QueueId{1}).number, 7u);
  EXPECT_EQ(rdma_->UserOf(QueueId{3}).number, 8u);
  const std::vector<LinkId> links = rdma_->LinksOf(queue_pair_);
  ASSERT_EQ(links.size(), 4u);
  EXPECT_EQ(links[1], out_);
  EXPECT_EQ(links[3], to_memory_);
}

// --- Many messages -------------------------------------------------------------------------------

TEST_F(RdmaTransportTest, TensOfThousandsOfMessagesOneByOneTakeARoundTripEach) {
  Connect({});
  constexpr int64_t kMessages = 50'000;
  on_completed_ = [&](uint32_t) {
    if (completed_.size() < kMessages) rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  };
  rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  engine().Run();
  EXPECT_EQ(delivered_.size(), static_cast<size_t>(kMessages));
  ASSERT_EQ(completed_.size(), static_cast<size_t>(kMessages));
  EXPECT_EQ(completed_.back().time_ps, kMessages * (RunPs(kFirstPs, 1) + kAckPathPs));
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 0u);
}

TEST_F(RdmaTransportTest, TensOfThousandsOfMessagesInARowFillTheWire) {
  Connect({});
  constexpr int64_t kMessages = 50'000;
  constexpr int64_t kAhead = 200;
  int64_t posted = 0;
  for (; posted < kAhead; ++posted) rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
  on_completed_ = [&](uint32_t) {
    if (posted < kMessages) {
      ++posted;
      rdma_->Post(queue_pair_, PostedMessage::OfData(kMtu));
    }
  };
  engine().Run();
  ASSERT_EQ(delivered_.size(), static_cast<size_t>(kMessages));
  EXPECT_EQ(delivered_.back().time_ps, MessagePs(1) + (kMessages - 1) * kFirstPs);
  EXPECT_EQ(completed_.size(), static_cast<size_t>(kMessages));
  EXPECT_EQ(network().live_packets(), 0u);
}

TEST_F(RdmaTransportTest, NothingIsLostRepeatedOrRecoveredWithoutAFault) {
  Connect({});
  for (int i = 0; i < 100; ++i) rdma_->Post(queue_pair_, PostedMessage::OfData(3'000));
  engine().Run();
  EXPECT_THAT(delivered_, Each(Field(&Reported::connection, 7u)));
  EXPECT_THAT(dropped_, IsEmpty());
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_THAT(retransmitted_, IsEmpty());
  EXPECT_THAT(recovered_, IsEmpty());
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(rdma_->counters().timeouts, 0u);
  EXPECT_EQ(rdma_->counters().nacks, 0u);
}

TEST_F(RdmaTransportTest, AMessageOf4GiBIsAProgramError) {
  Connect({});
  EXPECT_DEATH(rdma_->Post(queue_pair_, PostedMessage::OfData(UINT32_MAX)),
               "an RDMA message of 4 GiB or more");
}

}  // namespace
}  // namespace railyard
