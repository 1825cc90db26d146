// SPDX-License-Identifier: GPL-2.0-only
// Connections over the two ports of NICs: how messages are divided, what becomes of them when a
// port fails, and when it is used again. All instants follow from the local ACK timer and the
// delays of NCCL 2.30 (src/transport/net_ib/p2p_resiliency.cc, p2p_resiliency_recovery.cc).
#include "simulator/transport/connections/striped_connections.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kBytePs = 20;     // 400 Gb/s
constexpr int64_t kHostBytePs = 5;  // 1.6 Tb/s
constexpr uint64_t kMtu = 1'024;
constexpr int64_t kHeaders = 82;
constexpr int64_t kReth = 16;
constexpr int64_t kTimeoutPs = int64_t{4'096'000} << 5;
constexpr int64_t kBudgetPs = 8 * kTimeoutPs;
constexpr int64_t kProbeDelayPs = 10'000'000'000;

constexpr uint32_t kConnection = 7;

// gpu0 - nic0 = {leaf0, leaf1} = nic1 - gpu1: two ports at each NIC, no delays but transmission.
class StripedConnectionsTest : public testing::TransportFixture {
 protected:
  void SetUp() override {
    for (int32_t server = 0; server < 2; ++server) {
      gpus_.push_back(AddInServer(DeviceKind::kGpu, server, 0));
      nics_.push_back(AddInServer(DeviceKind::kNic, server, 0));
      graph_.AddCable(gpus_.back(), nics_.back(), {Tier::kHost, 1'600'000'000'000, 0, 1});
    }
    for (const std::string name : {"leaf0", "leaf1"}) {
      const DeviceId leaf = AddSwitch(name);
      for (const DeviceId nic : nics_) {
        graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 0, 1});
      }
    }
  }
  void TearDown() override {
    striped_.reset();
    TransportFixture::TearDown();
  }
  void Connect(const NetIbSettings& settings) {
    const NicSettings nic = {.mtu_bytes = kMtu, .ib_timeout = 5, .link_aggregation = false};
    BuildTransports(nic);
    striped_.emplace(graph_, *rdma_, engine(), nic, settings);
    ASSERT_TRUE(striped_->AreSeveral(GpuIndex{0}, GpuIndex{1}));
    stripe_ = striped_->Open(Me(kConnection), GpuIndex{0}, GpuIndex{1}, 1);
  }
  uint64_t PayloadOver(const std::string& leaf) {
    return network().CountersOfLink(Link("server0/nic0", leaf)).payload_bytes;
  }
  // Returns the time of a message of so many full packets, from memory to memory.
  static int64_t AlonePs(int64_t packets) {
    const int64_t full = kMtu + kHeaders;
    return 2 * full * kHostBytePs + (packets + 1) * full * kBytePs +
           kReth * (kHostBytePs + 2 * kBytePs);
  }
  // A request without payload from memory to memory, and 128 bytes from NIC to NIC, behind the
  // request's ACK, which left while the request was on its way from NIC to memory.
  static constexpr int64_t kProbePs = 2 * (kHeaders + kReth) * (kHostBytePs + kBytePs) +
                                      2 * (128 + kHeaders + kReth) * kBytePs +
                                      (kHeaders + 4) * kBytePs - (kHeaders + kReth) * kHostBytePs;

  std::vector<DeviceId> gpus_;
  std::vector<DeviceId> nics_;
  std::optional<StripedConnections> striped_;
  FlowId stripe_;
};

// --- Dividing ------------------------------------------------------------------------------------

TEST_F(StripedConnectionsTest, AMessageGoesOverBothPortsInPartsOf128Bytes) {
  Connect({});
  striped_->Post(stripe_, PostedMessage::OfData(1'000));
  engine().Run();
  // ceil(1000 / 2) to a multiple of 128, and the rest.
  EXPECT_EQ(PayloadOver("leaf0"), 512u);
  EXPECT_EQ(PayloadOver("leaf1"), 488u);
  // With 0 bytes both ports carry an immediate.
  striped_->Post(stripe_, PostedMessage::OfData(0));
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(Link("server0/nic0", "leaf1")).packets, 2u);
  EXPECT_THAT(delivered_, SizeIs(2));
  EXPECT_THAT(completed_, SizeIs(2));
  EXPECT_TRUE(errors_.empty());
}

TEST_F(StripedConnectionsTest, AmazonsPlugInDividesLargeMessagesAlone) {
  Connect({.rails = RailSettings{.stripe_bytes = 4'096}});
  for (int i = 0; i < 3; ++i) striped_->Post(stripe_, PostedMessage::OfData(1'000));
  engine().Run();
  EXPECT_EQ(PayloadOver("leaf0"), 2'000u);
  EXPECT_EQ(PayloadOver("leaf1"), 1'000u);
  // The second port is next: ceil(5000 / 2) to a multiple of 128, and the rest.
  striped_->Post(stripe_, PostedMessage::OfData(5'000));
  engine().Run();
  EXPECT_EQ(PayloadOver("leaf1"), 1'000 + 2'560u);
  EXPECT_EQ(PayloadOver("leaf0"), 2'000 + 2'440u);
  EXPECT_THAT(delivered_, SizeIs(4));
  EXPECT_THAT(completed_, SizeIs(4));
}

TEST_F(StripedConnectionsTest, TwoPortsTakeHalfTheTime) {
  Connect({});
  striped_->Post(stripe_, PostedMessage::OfData(200 * kMtu));
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  EXPECT_GE(delivered_[0].time_ps, AlonePs(100));
  // PCIe brings one packet after the other.
  EXPECT_LE(delivered_[0].time_ps, AlonePs(100) + int64_t{kMtu + kHeaders} * kHostBytePs * 2);
}

TEST_F(StripedConnectionsTest, AMessageTakesAQueuePairOfEachPortInTurnOrAllOfThem) {
  for (const bool is_split : {false, true}) {
    Connect({.ib_qps_per_connection = 2, .ib_split_data_on_qps = is_split});
    std::vector<uint32_t> over_leaf0;
    network().SetLossFilter(Link("server0/nic0", "leaf0"), [&](const Packet& packet) {
      if (packet.kind == PacketKind::kNetworkData) over_leaf0.push_back(packet.flow / 2);
      return false;
    });
    for (int i = 0; i < 4; ++i) {
      striped_->Post(stripe_, PostedMessage::OfData(256));
      engine().Run();
    }
    // Queue pairs 0 and 2 are of the first port.
    EXPECT_EQ(over_leaf0, is_split ? (std::vector<uint32_t>{0, 2, 0, 2, 0, 2, 0, 2})
                                   : (std::vector<uint32_t>{0, 2, 0, 2}));
    EXPECT_EQ(PayloadOver("leaf0"), 4 * 128u);
    TearDown();
  }
}

TEST_F(StripedConnectionsTest, ClearToSendGoesOverThePortsInTurn) {
  Connect({});
  std::vector<int> over_leaf1;
  network().SetLossFilter(Link("server1/nic0", "leaf1"), [&](const Packet& packet) {
    if (packet.kind == PacketKind::kClearToSend) over_leaf1.push_back(1);
    return false;
  });
  for (int i = 0; i < 5; ++i) striped_->Grant(stripe_, true);
  engine().Run();
  EXPECT_THAT(clear_to_send_, SizeIs(5));
  EXPECT_THAT(over_leaf1, SizeIs(2));
}

// A message that is over on one port waits for the one before it on the other.
TEST_F(StripedConnectionsTest, MessagesAreReportedInTheirOrder) {
  Connect({.ib_qps_per_connection = 2});
  bool lost = false;
  network().SetLossFilter(Link("server0/nic0", "leaf0"), [&](const Packet& packet) {
    return packet.kind == PacketKind::kNetworkData && packet.flow / 2 == 0 &&
           !std::exchange(lost, true);
  });
  striped_->Post(stripe_,
                 PostedMessage::OfData(256));  // queue pairs 0 and 1, and the former loses it
  striped_->Post(stripe_, PostedMessage::OfData(256));  // 2 and 3
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_GE(delivered_[0].time_ps, kTimeoutPs);
  EXPECT_EQ(delivered_[1].time_ps, delivered_[0].time_ps);
  EXPECT_THAT(recovered_, SizeIs(1));
}

// The second port's part lacks a packet in its middle, which a NACK repairs; the first port's lacks
// its last, which the timer repairs.
TEST_F(StripedConnectionsTest, AConnectionHasRecoveredWhenItsLastQueuePairHas) {
  Connect({});
  const auto lose_data_once = [&](const std::string& leaf, int which) {
    network().SetLossFilter(Link("server0/nic0", leaf),
                            [which, seen = 0](const Packet& packet) mutable {
                              return packet.kind == PacketKind::kNetworkData && seen++ == which;
                            });
  };
  lose_data_once("leaf0", 7);
  lose_data_once("leaf1", 3);
  striped_->Post(stripe_, PostedMessage::OfData(16 * kMtu));
  engine().Run();
  EXPECT_THAT(lost_, SizeIs(2));
  ASSERT_THAT(retransmitted_, SizeIs(2));
  EXPECT_LT(retransmitted_[0].time_ps, kTimeoutPs);
  EXPECT_GE(retransmitted_[1].time_ps, kTimeoutPs);
  ASSERT_THAT(completed_, SizeIs(1));
  EXPECT_THAT(recovered_, ElementsAre(Reported{completed_[0].time_ps, kConnection}));
}

// --- Failover ------------------------------------------------------------------------------------

constexpr NetIbSettings kFailover = {.port_failover = true};

TEST_F(StripedConnectionsTest, WithoutFailoverTheConnectionFailsWithThePort) {
  Connect({});
  Down(Link("server0/nic0", "leaf0"), 0, kNeverPs);
  At(1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].time_ps, 1 + kBudgetPs);
  EXPECT_EQ(errors_[0].connection, kConnection);
  EXPECT_THAT(errors_[0].why, StartsWith("IBV_WC_RETRY_EXC_ERR(12) on server0/nic0"));
  EXPECT_THAT(delivered_, IsEmpty());
}

TEST_F(StripedConnectionsTest,
       AFailedPortsPartIsSentOverTheOtherAfterTheBudgetTheDelayAndTheProbe) {
  Connect(kFailover);
  Down(Link("server0/nic0", "leaf0"), 0, kNeverPs);
  At(1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  engine().Run();
  EXPECT_THAT(errors_, IsEmpty());
  const int64_t failed_ps = 1 + kBudgetPs;
  ASSERT_THAT(delivered_, SizeIs(1));
  EXPECT_EQ(delivered_[0].time_ps, failed_ps + kProbeDelayPs + kProbePs + AlonePs(4));
  EXPECT_THAT(completed_, SizeIs(1));
  EXPECT_EQ(PayloadOver("leaf1"), 8u * kMtu);
  EXPECT_EQ(striped_->counters().failovers, 1u);
  EXPECT_EQ(striped_->counters().recoveries, 0u);
  // The recovery time is split by its causes.
  const RecoveryTimes times = striped_->RecoveryOf(stripe_, true);
  EXPECT_EQ(times.timeout_ps + times.retransmission_ps,
            failed_ps - lost_.front().time_ps + kProbeDelayPs + kProbePs);
  EXPECT_THAT(recovered_, ElementsAre(Reported{completed_[0].time_ps, kConnection}));
  // From here on both halves go over the port that is left.
  const int64_t now_ps = engine().NowPs();
  striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu));
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_NEAR(static_cast<double>(delivered_[1].time_ps - now_ps), static_cast<double>(AlonePs(8)),
              static_cast<double>(kReth * kBytePs));
  EXPECT_EQ(PayloadOver("leaf1"), 16u * kMtu);
}

// The ACKs were lost, not the data: the receiver's record says so, and nothing is sent again.
TEST_F(StripedConnectionsTest, WhatTheReceiverHasIsNotSentAgain) {
  Connect(kFailover);
  network().SetLossFilter(Link("server1/nic0", "leaf0"),
                          [](const Packet& packet) { return packet.kind == PacketKind::kAck; });
  striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu));
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  EXPECT_LT(delivered_[0].time_ps, kTimeoutPs);
  ASSERT_THAT(completed_, SizeIs(1));
  EXPECT_EQ(completed_[0].time_ps, kBudgetPs + kProbeDelayPs + kProbePs);
  EXPECT_EQ(PayloadOver("leaf1"), 4u * kMtu);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(StripedConnectionsTest, LostClearToSendIsSentAgainAtOnceWhenItsPortFails) {
  Connect(kFailover);
  Down(Link("server1/nic0", "leaf0"), 0, kNeverPs);
  At(1, [&] {
    for (int i = 0; i < 3; ++i) striped_->Grant(stripe_, true);
  });
  engine().Run();
  // The first and the third are of the port that fails; the second waits for the first.
  const int64_t failed_ps = 1 + kBudgetPs;
  constexpr int64_t kElementPs = (64 + kHeaders + kReth) * kBytePs;
  ASSERT_THAT(clear_to_send_, SizeIs(3));
  EXPECT_EQ(clear_to_send_[0].time_ps, failed_ps + 2 * kElementPs);
  EXPECT_EQ(clear_to_send_[1].time_ps, failed_ps + 2 * kElementPs);
  EXPECT_EQ(clear_to_send_[2].time_ps, failed_ps + 3 * kElementPs);
  EXPECT_THAT(recovered_, SizeIs(1));
  EXPECT_EQ(striped_->counters().failovers, 1u);
}

// An end in the error state answers nobody: the other finds out by its own timer.
TEST_F(StripedConnectionsTest, TheOtherEndNoticesByItsOwnTimer) {
  Connect(kFailover);
  const LinkId wire = Link("server0/nic0", "leaf0");
  Down(wire, 0, kBudgetPs + kTimeoutPs);
  At(1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  // The port works again, and the sender's queue pair does not.
  const int64_t granted_ps = kBudgetPs + 2 * kTimeoutPs;
  At(granted_ps, [&] { striped_->Grant(stripe_, true); });
  engine().Run();
  ASSERT_THAT(clear_to_send_, SizeIs(1));
  constexpr int64_t kElementPs = (64 + kHeaders + kReth) * kBytePs;
  EXPECT_EQ(clear_to_send_[0].time_ps, granted_ps + kBudgetPs + 2 * kElementPs);
  EXPECT_EQ(Drops(DropReason::kQueuePairError), 8u);  // the first try and seven retries
  EXPECT_EQ(striped_->counters().failovers, 2u);
}

TEST_F(StripedConnectionsTest, WithoutAPortThatWorksTheConnectionFails) {
  Connect(kFailover);
  Down(Link("server0/nic0", "leaf0"), 0, kNeverPs);
  Down(Link("server0/nic0", "leaf1"), kBudgetPs + kProbeDelayPs / 2, kNeverPs);
  At(1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  engine().Run();
  // The probe's own retries.
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].time_ps, 1 + kBudgetPs + kProbeDelayPs + kBudgetPs);
  EXPECT_THAT(delivered_, IsEmpty());
}

TEST_F(StripedConnectionsTest, NothingIsBegunOnceItIsClosed) {
  Connect(kFailover);
  Down(Link("server0/nic0", "leaf0"), 0, kNeverPs);
  At(1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  At(kBudgetPs + kProbeDelayPs / 2, [&] { striped_->Close(stripe_); });
  engine().Run();
  // Four packets and their ACKs before it, and no probe after it.
  EXPECT_EQ(network().CountersOfLink(Link("server0/nic0", "leaf1")).packets, 4u);
  EXPECT_THAT(completed_, IsEmpty());
}

// --- Recovery ------------------------------------------------------------------------------------

constexpr int64_t kMsPs = 1'000'000'000;
constexpr NetIbSettings kRecovery = {.port_failover = true,
                                     .port_recovery = true,
                                     .recovery_start_delay_ps = 20 * kMsPs,
                                     .recovery_alive_msg_timeout_ps = 40 * kMsPs,
                                     .recovery_ack_timeout_ps = 50 * kMsPs,
                                     .recovery_attempts_max = 5};

class PortRecoveryTest : public StripedConnectionsTest {
 protected:
  // Both ends lose something over the first port, which is down until then.
  void FailBothEnds(int64_t until_ps) {
    Down(Link("server0/nic0", "leaf0"), 0, until_ps);
    Down(Link("leaf0", "server0/nic0"), 0, until_ps);
    At(1, [this] {
      striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu));
      striped_->Grant(stripe_, true);
    });
  }
  static constexpr int64_t kFailedPs = 1 + kBudgetPs;
  // Returns the bytes of a message that go over the first port.
  uint64_t OverFirstPort() {
    const uint64_t before = PayloadOver("leaf0");
    striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu));
    engine().Run();
    return PayloadOver("leaf0") - before;
  }
};

// Five messages in order are not more than five: the second batch is what counts.
TEST_F(PortRecoveryTest, APortIsUsedAgainAfterTheSecondBatch) {
  Connect(kRecovery);
  FailBothEnds(2 * kMsPs);
  const int64_t put_back_ps =
      kFailedPs + kRecovery.recovery_start_delay_ps + kRecovery.recovery_ack_timeout_ps;
  uint64_t before = 0;
  At(put_back_ps - 1, [&] { before = striped_->counters().recoveries; });
  uint64_t after = 0;
  At(put_back_ps + 1'000'000, [&] { after = striped_->counters().recoveries; });
  engine().Run();
  EXPECT_EQ(striped_->counters().failovers, 2u);
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(after, 2u);
  EXPECT_EQ(OverFirstPort(), 4u * kMtu);
  striped_->Grant(stripe_, true);
  striped_->Grant(stripe_, true);
  engine().Run();
  EXPECT_THAT(clear_to_send_, SizeIs(3));
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(network().live_packets(), 0u);
  ExpectConservation();
}

// The receiver's count begins anew with the first batch that arrives, which is not in order: four
// of it count, and the next makes them more than five.
TEST_F(PortRecoveryTest, APortThatComesBackLaterTakesTwoBatchesFromThere) {
  Connect(kRecovery);
  const int64_t first_ps = kFailedPs + kRecovery.recovery_start_delay_ps;
  FailBothEnds(first_ps + 60 * kMsPs);
  const int64_t put_back_ps = first_ps + 3 * kRecovery.recovery_ack_timeout_ps;
  uint64_t before = 0;
  At(put_back_ps - 1, [&] { before = striped_->counters().recoveries; });
  engine().Run();
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(striped_->counters().recoveries, 2u);
  EXPECT_EQ(OverFirstPort(), 4u * kMtu);
}

// Attempts are counted: five time-outs of 50 ms at the sender, at the receiver one at once and four
// of 40 ms.
TEST_F(PortRecoveryTest, APortThatStaysDownIsGivenUp) {
  Connect(kRecovery);
  const int64_t first_ps = kFailedPs + kRecovery.recovery_start_delay_ps;
  FailBothEnds(first_ps + 4 * kRecovery.recovery_alive_msg_timeout_ps + kMsPs);
  engine().Run();
  // Nothing is left to happen behind the sender's last time-out but what the message took.
  EXPECT_EQ(engine().NowPs(), first_ps + 5 * kRecovery.recovery_ack_timeout_ps);
  EXPECT_EQ(striped_->counters().recoveries, 0u);
  EXPECT_EQ(OverFirstPort(), 0u);
  EXPECT_THAT(delivered_, SizeIs(2));
}

// A receiver that lost nothing posts no receives for alive messages.
TEST_F(PortRecoveryTest, OneEndAloneDoesNotRecover) {
  Connect(kRecovery);
  Down(Link("server0/nic0", "leaf0"), 0, 2 * kMsPs);
  At(1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  engine().Run();
  EXPECT_EQ(striped_->counters().failovers, 1u);
  EXPECT_EQ(striped_->counters().recoveries, 0u);
  EXPECT_EQ(OverFirstPort(), 0u);
}

TEST_F(PortRecoveryTest, ARecoveredPortMayFailAgain) {
  Connect(kRecovery);
  FailBothEnds(2 * kMsPs);
  engine().Run();
  const int64_t again_ps = engine().NowPs() + kMsPs;
  Down(Link("server0/nic0", "leaf0"), again_ps, kNeverPs);
  At(again_ps + 1, [&] { striped_->Post(stripe_, PostedMessage::OfData(8 * kMtu)); });
  engine().Run();
  EXPECT_EQ(striped_->counters().failovers, 3u);
  EXPECT_THAT(delivered_, SizeIs(2));
  EXPECT_THAT(errors_, IsEmpty());
}

}  // namespace
}  // namespace railyard
