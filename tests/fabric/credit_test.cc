// SPDX-License-Identifier: GPL-2.0-only
// Link-level credits: a sender never has more bytes in flight than its receiver has room for.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fabric/star_fixture.h"

namespace railyard {
namespace {

// nic0 - leaf - nic1, 400 Gb/s, 100 ns of cable: a packet of 1,000 B takes 20 ns to send. Credit
// for the first link is back when the packet has crossed the second: 2 x (20 + 100) ns.
class CreditTest : public testing::StarFixture, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr int64_t kSendPs = 20'000;
  static constexpr int64_t kCablePs = 100'000;
  static constexpr int64_t kRoundTripPs = 2 * (kSendPs + kCablePs);

  void BuildWithCredit(uint32_t credit_bytes) {
    AddNic(kRate, kCablePs);
    AddNic(kRate, kCablePs);
    BuildNetwork();
    network().SetAttribute("NetworkFlowControl",
                           ns3::EnumValue(static_cast<int>(FlowControl::kCredits)));
    network().SetAttribute("CreditBytes", ns3::UintegerValue(credit_bytes));
    network().Configure();
  }
  void OnLinkReleased(LinkId link) override {
    EXPECT_EQ(link, Uplink(0));
    ++released_;
  }
  uint64_t released_ = 0;
};

// k packets of credit: packet j starts one round trip after packet j - k, and after packet j - 1
// has been sent.
TEST_P(CreditTest, ThroughputIsCreditOverRoundTripUntilTheLinkIsFull) {
  const uint32_t k = GetParam();
  constexpr uint32_t kPackets = 240;
  BuildWithCredit(k * 1'000);
  InjectMany(PathTo(0, 1), {.count = kPackets, .wire_bytes = 1'000});
  engine().Run();
  ASSERT_EQ(at_nic_.size(), kPackets);
  std::vector<int64_t> start_ps(kPackets);
  for (uint32_t j = 0; j < kPackets; ++j) {
    if (j >= 1) start_ps[j] = start_ps[j - 1] + kSendPs;
    if (j >= k) start_ps[j] = std::max(start_ps[j], start_ps[j - k] + kRoundTripPs);
    ASSERT_EQ(at_nic_[j].time_ps, start_ps[j] + kRoundTripPs) << "packet " << j;
  }
  const bool is_full = k * kSendPs >= kRoundTripPs;
  EXPECT_EQ(at_nic_.back().time_ps == kPackets * kSendPs + 2 * kCablePs + kSendPs, is_full);
  // With just enough, credit comes back at the instant it is asked for.
  EXPECT_EQ(released_ > 0, k * kSendPs <= kRoundTripPs);
  EXPECT_EQ(network().buffers().AccountBytes(Uplink(0)), 0u);
  EXPECT_EQ(network().counters().xoff_frames, 0u);
  network().CheckConservation();
}

INSTANTIATE_TEST_SUITE_P(Packets, CreditTest, ::testing::Values(1, 2, 5, 11, 12, 24));

TEST_F(CreditTest, WhatIsUnderWayNeverExceedsTheCredit) {
  BuildWithCredit(5'500);
  InjectMany(PathTo(0, 1), {.count = 100, .wire_bytes = 1'000});
  uint64_t most = 0;
  for (int64_t time_ps = 0; time_ps < 4 * kPsPerUs; time_ps += 7'000) {
    At(time_ps, [&] {
      // In the short form what is timed counts as well, but only if all of it fits.
      most = std::max(most, network().buffers().AccountBytes(Uplink(0)));
    });
  }
  engine().Run();
  EXPECT_EQ(most, 5'000u);
}

TEST_F(CreditTest, APacketLargerThanTheCreditGoesAlone) {
  BuildWithCredit(100);
  InjectMany(PathTo(0, 1), {.count = 3, .wire_bytes = 1'000});
  engine().Run();
  ASSERT_EQ(at_nic_.size(), 3u);
  EXPECT_EQ(at_nic_[2].time_ps, 3 * kRoundTripPs);
}

TEST_F(CreditTest, CongestionNotificationsNeedNoCredit) {
  BuildWithCredit(1'000);
  const PathRef path = PathTo(0, 1);
  InjectMany(path, {.count = 10, .wire_bytes = 1'000});
  At(60'000, [&] {
    EXPECT_TRUE(network().IsHeld(Uplink(0)));
    Inject(path, 77, 64, 0, PacketKind::kCnp);
  });
  engine().Run();
  ASSERT_EQ(at_nic_.size(), 11u);
  EXPECT_EQ(at_nic_[1].sequence, 77u);
  EXPECT_EQ(at_nic_[1].time_ps, 60'000 + 2 * (1'280 + kCablePs));
  network().CheckConservation();
}

TEST_F(CreditTest, CreditOfALostPacketComesBack) {
  BuildWithCredit(1'000);
  network().SetLossFilter(Uplink(0), [](const Packet& packet) { return packet.sequence == 1; });
  InjectMany(PathTo(0, 1), {.count = 3, .wire_bytes = 1'000});
  engine().Run();
  EXPECT_EQ(at_nic_.size(), 2u);
  EXPECT_EQ(DroppedPackets(DropReason::kBitError), 1u);
  EXPECT_EQ(network().CountersOfLink(Uplink(0)).dropped_packets, 1u);
  EXPECT_EQ(network().buffers().AccountBytes(Uplink(0)), 0u);
  network().CheckConservation();
}

// --- NVLink --------------------------------------------------------------------------------------

// Two GPUs send to a third over an NVSwitch. Each holds at most its credit there: the switch's
// queue is what the two have, and the senders wait.
TEST(NvlinkCreditTest, SendersWaitForTheReceiverTheyShare) {
  FabricGraph graph;
  std::vector<DeviceId> gpus;
  const DeviceId nvswitch = graph.AddDevice({.name = "server0/nvswitch0",
                                             .kind = DeviceKind::kNvSwitch,
                                             .server = ServerIndex{0},
                                             .local_index = 0,
                                             .forwarding_latency_ps = 0});
  for (int32_t i = 0; i < 3; ++i) {
    gpus.push_back(graph.AddDevice({.name = "server0/gpu" + std::to_string(i),
                                    .kind = DeviceKind::kGpu,
                                    .server = ServerIndex{0},
                                    .local_index = i,
                                    .forwarding_latency_ps = 0}));
    graph.AddCable(gpus.back(), nvswitch, {Tier::kNvlink, 400'000'000'000, 100'000, 4});
  }
  class Counter : public PacketSink {
   public:
    explicit Counter(FabricNetwork& network) : network_(network) {}
    void OnPacketAtNic(PacketId /*packet*/) override { FAIL(); }
    void OnPacketInMemory(PacketId packet) override {
      ++arrived;
      last_ps = network_.engine().NowPs();
      network_.Deliver(packet);
    }
    void OnPacketDropped(PacketId, DropReason, LinkId) override { FAIL(); }
    uint64_t arrived = 0;
    int64_t last_ps = 0;

   private:
    FabricNetwork& network_;
  };
  auto network = ns3::CreateObject<FabricNetwork>();
  network->SetAttribute("NvlinkCreditBytes", ns3::UintegerValue(5'000));  // four lanes: 20,000
  network->Build(graph, FabricSimulatorImpl::Get());
  Counter counter(*network);
  network->SetSink(counter);
  std::vector<LinkId> up;
  for (int i = 0; i < 2; ++i) {
    up.push_back(*graph.FindLink(gpus[static_cast<size_t>(i)], nvswitch));
    const PathRef path = network->AddPath({up.back(), *graph.FindLink(nvswitch, gpus[2])});
    for (uint32_t p = 0; p < 200; ++p) {
      const PacketId index = network->AllocatePacket();
      Packet& packet = network->packet(index);
      packet.path = path.first;
      packet.hop_count = path.hop_count;
      packet.wire_bytes = 1'000;
      packet.payload_bytes = 824;
      network->Inject(index);
    }
  }
  FabricSimulatorImpl& engine = FabricSimulatorImpl::Get();
  ns3::Simulator::Stop(ns3::TimeStep(3 * kPsPerUs));
  engine.Run();
  for (const LinkId link : up) {
    EXPECT_EQ(network->buffers().AccountBytes(link), 20'000u);
  }
  EXPECT_TRUE(network->IsHeld(up[0]) || network->IsHeld(up[1]));
  engine.Run();
  EXPECT_EQ(counter.arrived, 400u);
  // The shared link is never idle.
  EXPECT_EQ(counter.last_ps, 20'000 + 100'000 + 400 * 20'000 + 100'000);
  network->CheckConservation();
  network = nullptr;
  ns3::Simulator::Destroy();
}

}  // namespace
}  // namespace railyard
