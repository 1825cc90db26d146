// SPDX-License-Identifier: GPL-2.0-only
// Queue pairs that share one port under each control: marks, CNPs, fairness, convergence, pauses.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/boolean.h>
#include <ns3/callback.h>
#include <ns3/double.h>
#include <ns3/simulator.h>
#include <ns3/uinteger.h>

#include "simulator/transport/congestion/congestion_controls.h"
#include "simulator/transport/rdma/rdma_transport.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// gpu 1..n - nic - switch - nic0 - gpu0, all wires at 40 Gb/s as in DCQCN's paper.
class CongestionTest : public testing::TransportFixture {
 protected:
  static constexpr uint64_t kRateBps = 40'000'000'000;
  static constexpr uint32_t kMtu = 1'024;
  // Payload's share of the wire with full packets.
  static constexpr double kPayloadShare = 1'024.0 / (1'024 + 82);

  // Marking as in DCQCN's paper, section 5.2: 5 KB, 200 KB, 1 %. The buffer is large enough for any
  // window unless a test says otherwise.
  void BuildIncast(uint32_t senders, NicSettings nic, const std::string& control) {
    nic.mtu_bytes = kMtu;
    nic.congestion_control = CongestionControlNamed(control).value();
    const DeviceId leaf = AddSwitch("leaf0", 300'000);
    for (uint32_t server = 0; server <= senders; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, static_cast<int32_t>(server), 0);
      const DeviceId nic_id = AddInServer(DeviceKind::kNic, static_cast<int32_t>(server), 0);
      graph_.AddCable(gpu, nic_id, {Tier::kHost, 500'000'000'000, 100'000, 1});
      graph_.AddCable(nic_id, leaf, {Tier::kNicLeaf, kRateBps, 1'000'000, 1});
    }
    BuildTransports(nic);
    leaf_ = leaf;
    Scale("EcnKminBytes", 5'000);
    Scale("EcnKmaxBytes", 200'000);
    network().GetSwitch(leaf)->SetAttribute("EcnPmax", ns3::DoubleValue(0.01));
    network().Configure();
    for (uint32_t sender = 1; sender <= senders; ++sender)
      Open(sender, GpuIndex{sender}, GpuIndex{0}, sender);
    delivered_bytes_.resize(senders + 1);
  }
  // The attributes are for a port of 25 Gb/s.
  void Scale(const std::string& attribute, uint64_t bytes) {
    network().GetSwitch(leaf_)->SetAttribute(attribute, ns3::UintegerValue(bytes * 25 / 40));
  }
  // Every sender always has something to send.
  void KeepBusy() {
    for (FlowId pair{0}; pair + 1 < delivered_bytes_.size(); ++pair) {
      for (int i = 0; i < 3; ++i) rdma_->Post(pair, PostedMessage::OfData(kMessage));
    }
    on_completed_ = [this](uint32_t connection) {
      rdma_->Post(FlowId{connection - 1}, PostedMessage::OfData(kMessage));
    };
  }
  void OnPacketInMemory(PacketId index) override {
    const Packet& packet = network().packet(index);
    delivered_bytes_[rdma_->UserOf(QueueId{packet.flow}).number] += packet.payload_bytes;
    TransportFixture::OnPacketInMemory(index);
  }
  void RunUntil(int64_t time_ps) {
    ns3::Simulator::Stop(ns3::PicoSeconds(static_cast<uint64_t>(time_ps - engine().NowPs())));
    engine().Run();
  }
  // Returns the limits that the congestion control, which all NICs share, sets to the first flow.
  SendLimits LimitsOfFirst() const {
    const NicKinds& kinds = rdma_->nic_kinds();
    return kinds[0].control->limits(FlowId{0});
  }
  // Rates of the senders from now to `until_ps`, as shares of what the port can carry of payload.
  std::vector<double> SharesUntil(int64_t until_ps) {
    const std::vector<uint64_t> before = delivered_bytes_;
    const int64_t from_ps = engine().NowPs();
    RunUntil(until_ps);
    const double most_bytes = static_cast<double>(kRateBps) / 8 * kPayloadShare *
                              static_cast<double>(until_ps - from_ps) / kPsPerSecond;
    std::vector<double> shares;
    for (size_t i = 1; i < before.size(); ++i) {
      shares.push_back(static_cast<double>(delivered_bytes_[i] - before[i]) / most_bytes);
    }
    return shares;
  }
  static double Sum(const std::vector<double>& shares) {
    return std::accumulate(shares.begin(), shares.end(), 0.0);
  }
  // Jain, Chiu, Hawe: DEC-TR-301, 1984: 1 if all are equal, 1/n if one has it all.
  static double JainIndex(const std::vector<double>& shares) {
    double squares = 0;
    for (const double share : shares) squares += share * share;
    return Sum(shares) * Sum(shares) / (static_cast<double>(shares.size()) * squares);
  }

  static constexpr uint64_t kMessage = 1 << 20;
  DeviceId leaf_{0};
  std::vector<uint64_t> delivered_bytes_;  // by connection
};

class DcqcnFairnessTest : public CongestionTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(DcqcnFairnessTest, FlowsIntoOnePortComeToEqualSharesOfAllOfIt) {
  const uint32_t flows = GetParam();
  BuildIncast(flows, {.window_bytes = 8 << 20}, "DCQCN");
  KeepBusy();
  RunUntil(50 * kPsPerMs);
  const std::vector<double> shares = SharesUntil(100 * kPsPerMs);
  EXPECT_GT(JainIndex(shares), 0.95);
  EXPECT_GT(Sum(shares), 0.93);
  EXPECT_LE(Sum(shares), 1.001);
  EXPECT_GT(rdma_->counters().cnp, 0u);
  EXPECT_GE(rdma_->counters().ecn_marked, rdma_->counters().cnp);
  // At most one CNP per queue pair and 50 us.
  EXPECT_LE(rdma_->counters().cnp, flows * (100 * kPsPerMs / (50 * kPsPerUs) + 1));
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 0u);
}

INSTANTIATE_TEST_SUITE_P(Flows, DcqcnFairnessTest, ::testing::Values(2, 8, 32));

TEST_F(CongestionTest, AFlowLeftAloneIsBackAtLineRateWithinWhatTheIncreaseRulesTake) {
  BuildIncast(2, {.window_bytes = 8 << 20}, "DCQCN");
  KeepBusy();
  RunUntil(20 * kPsPerMs);
  on_completed_ = [this](uint32_t connection) {
    if (connection == 1) rdma_->Post(FlowId{0}, PostedMessage::OfData(kMessage));
  };
  while (rdma_->Describe(FlowId{1}).find("(0 data") == std::string::npos) {
    RunUntil(engine().NowPs() + kPsPerMs);
  }
  EXPECT_NE(LimitsOfFirst(), SendLimits{});
  // R_AI of 40 Mb/s per 55 us: 1,000 of them make 40 Gb/s, even without fast recovery and the byte
  // counter.
  RunUntil(engine().NowPs() + 1'000 * (55 * kPsPerUs));
  EXPECT_EQ(LimitsOfFirst(), SendLimits{});
  EXPECT_NEAR(Sum(SharesUntil(engine().NowPs() + kPsPerMs)), 1, 0.01);
}

struct ControlCase {
  std::string name;
  double sum_min;
  double jain_min;
};
void PrintTo(const ControlCase& tested, std::ostream* out) { *out << tested.name; }
class ControlTest : public CongestionTest, public ::testing::WithParamInterface<ControlCase> {};

TEST_P(ControlTest, EightFlowsFillThePortLoseNothingAndKeepTheQueueBelowTheirWindows) {
  BuildIncast(8, {.window_bytes = 1 << 20}, GetParam().name);
  KeepBusy();
  RunUntil(20 * kPsPerMs);
  const std::vector<double> shares = SharesUntil(60 * kPsPerMs);
  EXPECT_GT(Sum(shares), GetParam().sum_min);
  EXPECT_LE(Sum(shares), 1.001);
  EXPECT_GT(JainIndex(shares), GetParam().jain_min);
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 0u);
  // Eight windows are 8 MiB; without a control, all but what is on the wires waits in the switch.
  const int64_t windows_ps = TransferTimePs(8u << 20, kRateBps);
  EXPECT_LT(network().BacklogPs(Link("leaf0", "server0/nic0")), windows_ps / 4);
}

// TIMELY has no unique fair point (Zhu et al., CoNEXT 2016, section 4.1), and where the round trip
// is a few packets' time, its gradient is mostly noise that cuts rates.
INSTANTIATE_TEST_SUITE_P(Controls, ControlTest,
                         ::testing::Values(ControlCase{"DCTCP", 0.95, 0.9},
                                           ControlCase{"TIMELY", 0.4, 0},
                                           ControlCase{"HPCC", 0.9, 0.9},
                                           ControlCase{"SWIFT", 0.95, 0.9}),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(CongestionTest, WithoutAControlAllWindowsWaitInTheSwitchAndNoCnpIsSent) {
  BuildIncast(8, {.window_bytes = 1 << 20}, "NONE");
  KeepBusy();
  RunUntil(20 * kPsPerMs);
  EXPECT_GT(network().BacklogPs(Link("leaf0", "server0/nic0")), TransferTimePs(7u << 20, kRateBps));
  EXPECT_EQ(rdma_->counters().cnp, 0u);
  EXPECT_GT(rdma_->counters().ecn_marked, 0u);
}

TEST_F(CongestionTest, ALostCnpLeavesTheRateToTheNext) {
  BuildIncast(2, {.window_bytes = 8 << 20}, "DCQCN");
  uint64_t lost = 0;
  for (const std::string server : {"server1", "server2"}) {
    network().SetLossFilter(Link("leaf0", server + "/nic0"), [&](const Packet& packet) {
      if (packet.kind != PacketKind::kCnp || engine().NowPs() > 2 * kPsPerMs) return false;
      ++lost;
      return true;
    });
  }
  KeepBusy();
  RunUntil(2 * kPsPerMs);
  EXPECT_GT(lost, 1u);
  EXPECT_EQ(LimitsOfFirst(), SendLimits{});
  RunUntil(3 * kPsPerMs);
  EXPECT_NE(LimitsOfFirst(), SendLimits{});
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 0u);
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(retransmitted_, IsEmpty());
}

TEST_F(CongestionTest, TraceSourcesTellOfCnpsAndRates) {
  BuildIncast(2, {.window_bytes = 8 << 20}, "DCQCN");
  std::vector<NicCnpSent> cnps;
  std::vector<NicRateChanged> rates;
  for (const ns3::Ptr<Nic>& nic : rdma_->nic_kinds().nics()) {
    if (nic == nullptr) continue;
    nic->TraceConnectWithoutContext("CnpSent",
                                    ns3::Callback<void, const NicCnpSent&>(
                                        [&](const NicCnpSent& cnp) { cnps.push_back(cnp); }));
    nic->TraceConnectWithoutContext(
        "RateChanged", ns3::Callback<void, const NicRateChanged&>(
                           [&](const NicRateChanged& rate) { rates.push_back(rate); }));
  }
  KeepBusy();
  RunUntil(kPsPerMs);
  ASSERT_FALSE(cnps.empty());
  EXPECT_EQ(cnps.size(), rdma_->counters().cnp);
  ASSERT_FALSE(rates.empty());
  EXPECT_EQ(rates[0].rate_bps, kRateBps / 2);
  EXPECT_GT(rates[0].time_ps, cnps[0].time_ps);
}

TEST_F(CongestionTest, NicsThatArePausedHoldBackAndLoseNothing) {
  BuildIncast(8, {.window_bytes = 1 << 20}, "NONE");
  network().GetSwitch(leaf_)->SetAttribute("BufferBytes", ns3::UintegerValue(500'000));
  network().Configure();
  for (FlowId pair{0}; pair < 8; ++pair) rdma_->Post(pair, PostedMessage::OfData(kMessage));
  bool was_held = false;
  for (int64_t us = 0; us < 1'500; ++us) {
    RunUntil(us * kPsPerUs);
    for (int server = 1; server <= 8; ++server) {
      const LinkId wire = Link("server" + std::to_string(server) + "/nic0", "leaf0");
      was_held |= network().IsHeld(wire);
      // Bytes that a NIC reads ahead: PCIe's latency and three packets, and one more of each kind.
      EXPECT_LE(network().BacklogPs(wire), 100'000 + 6 * 1'122 * 200);
    }
  }
  engine().Run();
  EXPECT_TRUE(was_held);
  EXPECT_GT(network().counters().xoff_frames, 0u);
  EXPECT_THAT(delivered_, SizeIs(8));
  EXPECT_THAT(dropped_, IsEmpty());
  // The port was never idle: 8 MiB of payload in full packets, and the first one's way.
  const int64_t least_ps = int64_t{8} * 1'024 * (1'024 + 82) * 200;
  EXPECT_GE(delivered_.back().time_ps, least_ps);
  EXPECT_LE(delivered_.back().time_ps, least_ps + 20 * kPsPerUs);
}

}  // namespace
}  // namespace railyard
