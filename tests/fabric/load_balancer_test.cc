// SPDX-License-Identifier: GPL-2.0-only
// Packets of four NICs on one leaf, over four spines to a NIC on another leaf.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <ns3/string.h>

#include "tests/fabric/network_fixture.h"
#include "topologies/routing/routing.h"

namespace railyard::testing {
namespace {

constexpr uint64_t kRateBps = 400'000'000'000;
constexpr uint16_t kWireBytes = 4'000;
constexpr int64_t kPacketPs = 80'000;
constexpr size_t kSpines = 4;

class LoadBalancerTest : public NetworkFixture {
 protected:
  // The NIC of server 4 has so many ports.
  void Build(const char* policy, int ports = 1) {
    const auto cable = [this](DeviceId from, DeviceId to, Tier tier) {
      graph_.AddCable(from, to, {.tier = tier, .rate_bps = kRateBps, .propagation_ps = 0});
    };
    const DeviceId source_leaf = AddSwitch("leaf0");
    const DeviceId destination_leaf = AddSwitch("leaf1");
    for (int32_t server = 0; server < 5; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      cable(gpu, nic, Tier::kHost);
      for (int port = 0; port < (server < 4 ? 1 : ports); ++port) {
        cable(nic, server < 4 ? source_leaf : destination_leaf, Tier::kNicLeaf);
      }
    }
    for (size_t spine = 0; spine < kSpines; ++spine) {
      const DeviceId device = AddSwitch(Spine(spine));
      cable(source_leaf, device, Tier::kLeafSpine);
      cable(device, destination_leaf, Tier::kLeafSpine);
    }
    BuildNetwork();
    network().SetAttribute("LoadBalancing", ns3::StringValue(policy));
    network().SetAttribute("NetworkFlowControl", ns3::StringValue("NONE"));
    network().Configure();
    routing_.emplace(graph_, 1);
    network().SetRouting(*routing_);
  }
  static std::string Spine(size_t i) { return "spine" + std::to_string(i); }

  // The path by which ECMP would send.
  PathRef PathFrom(int server) {
    return network().AddPath(routing_->Resolve(Gpu(server), Gpu(4), 7));
  }
  DeviceId Gpu(int server) const {
    return graph_.FindDevice("server" + std::to_string(server) + "/gpu0").value();
  }
  // `count` packets of one flow, one each `gap_ps`.
  void SendTrain(int server, uint32_t count, int64_t gap_ps,
                 PacketKind kind = PacketKind::kNetworkData) {
    const PathRef path = PathFrom(server);
    for (uint32_t i = 0; i < count; ++i) {
      At(i * gap_ps, [this, path, i, kind] { Inject(path, i, kWireBytes, 3'900, kind); });
    }
  }
  std::array<uint64_t, kSpines> PacketsBySpine() const {
    std::array<uint64_t, kSpines> packets{};
    for (size_t i = 0; i < kSpines; ++i) {
      packets[i] = const_cast<LoadBalancerTest*>(this)
                       ->network()
                       .CountersOfLink(Link("leaf0", Spine(i)))
                       .packets;
    }
    return packets;
  }

  std::optional<EcmpRouting> routing_;
};

TEST_F(LoadBalancerTest, EcmpKeepsAFlowOnOneLink) {
  Build("ECMP");
  SendTrain(0, 400, kPacketPs);
  engine().Run();
  const auto packets = PacketsBySpine();
  EXPECT_EQ(*std::max_element(packets.begin(), packets.end()), 400u);
  EXPECT_EQ(at_nic_.size() + at_gpu_.size(), 400u);
}

// Binomial(4,000, 1/4): within five standard deviations.
TEST_F(LoadBalancerTest, SprayingDrawsForEachPacket) {
  Build("SPRAYING");
  SendTrain(0, 4'000, kPacketPs);
  engine().Run();
  const double deviation = std::sqrt(4'000 * 0.25 * 0.75);
  for (const uint64_t packets : PacketsBySpine()) {
    EXPECT_NEAR(static_cast<double>(packets), 1'000, 5 * deviation);
  }
  EXPECT_EQ(network().counters().delivered_bytes, 4'000u * 3'900);
}

// Ports have addresses, so that spines alone are drawn.
TEST_F(LoadBalancerTest, SprayedPacketsArriveAtTheirPort) {
  Build("SPRAYING", 2);
  network().GivePortsAddresses();
  const auto port_of = [this](int server, size_t port) {
    return graph_.WiresOfNic(graph_.NicOfGpu(Gpu(server)).value())[port];
  };
  const LinkId second = graph_.ReverseLink(port_of(4, 1));
  const PathRef path = network().AddPath(
      routing_->Resolve(Gpu(0), Gpu(4), 7, PortPins{.first = port_of(0, 0), .last = second}));
  for (uint32_t i = 0; i < 400; ++i) {
    At(int64_t{i} * kPacketPs, [this, path, i] { Inject(path, i, kWireBytes, 3'900); });
  }
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(second).packets, 400u);
  const auto packets = PacketsBySpine();
  EXPECT_LT(*std::max_element(packets.begin(), packets.end()), 400u);
}

// Four NICs at full rate into four links of the same rate. Sent by the least queued link, a packet
// finds at most what the three others sent at the same moment.
TEST_F(LoadBalancerTest, TheLeastQueuedLinkLeavesNoneBusierThanTheOthers) {
  Build("ADAPTIVE");
  for (int server = 0; server < 4; ++server) SendTrain(server, 500, kPacketPs);
  int64_t longest_ps = 0;
  for (int64_t time_ps = 0; time_ps < 500 * kPacketPs; time_ps += kPacketPs / 4) {
    At(time_ps, [this, &longest_ps] {
      for (size_t i = 0; i < kSpines; ++i) {
        longest_ps = std::max(longest_ps, network().BacklogPs(Link("leaf0", Spine(i))));
      }
    });
  }
  engine().Run();
  EXPECT_LE(longest_ps, kPacketPs);
  for (const uint64_t packets : PacketsBySpine()) EXPECT_EQ(packets, 500u);
}

TEST_F(LoadBalancerTest, AFlowletStaysAndTheNextOneMayGoElsewhere) {
  Build("FLOWLET");  // a gap of 20 us
  SendTrain(0, 400, 10 * kPsPerUs);
  engine().Run();
  auto packets = PacketsBySpine();
  EXPECT_EQ(*std::max_element(packets.begin(), packets.end()), 400u);

  const int64_t start_ps = engine().NowPs() + kPsPerMs;
  const PathRef path = PathFrom(1);
  for (uint32_t i = 0; i < 400; ++i) {
    At(start_ps + int64_t{i} * 30 * kPsPerUs,
       [this, path, i] { Inject(path, i, kWireBytes, 3'900); });
  }
  engine().Run();
  const auto after = PacketsBySpine();
  const double deviation = std::sqrt(400 * 0.25 * 0.75);
  for (size_t i = 0; i < kSpines; ++i) {
    EXPECT_NEAR(static_cast<double>(after[i] - packets[i]), 100, 5 * deviation);
  }
}

TEST_F(LoadBalancerTest, OnlyWritesAreBalanced) {
  Build("SPRAYING");
  SendTrain(0, 100, kPacketPs, PacketKind::kClearToSend);
  engine().Run();
  const auto packets = PacketsBySpine();
  EXPECT_EQ(*std::max_element(packets.begin(), packets.end()), 100u);
}

// A spine's way down is gone, and the routes know. Packets that are sent then avoid that spine;
// those that were there already cannot go on, for from there the way is longer than it was.
TEST_F(LoadBalancerTest, PacketsAvoidWhatRoutesKnowToBeDown) {
  Build("SPRAYING");
  const auto change = [this](bool up) {
    routing_->SetLinkUp(Link("spine0", "leaf1"), up);
    network().OnRoutesChanged();
  };
  At(0, [&] { change(false); });
  SendTrain(0, 1'000, kPacketPs);
  engine().Run();
  EXPECT_EQ(PacketsBySpine()[0], 0u);
  EXPECT_EQ(network().counters().delivered_bytes, 1'000u * 3'900);

  const int64_t start_ps = engine().NowPs() + kPsPerUs;
  At(start_ps, [&] {
    change(true);
    for (int server = 0; server < 4; ++server) {
      const PathRef path = PathFrom(server);
      for (uint32_t i = 0; i < 100; ++i) Inject(path, i, kWireBytes, 3'900);
    }
  });
  At(start_ps + 50 * kPacketPs, [&] { change(false); });
  engine().Run();
  EXPECT_EQ(dropped_.size(),
            network().counters().dropped_packets[static_cast<size_t>(DropReason::kNoRoute)]);
  EXPECT_GT(dropped_.size(), 0u);
  EXPECT_LT(dropped_.size(), 50u);  // of some 200 sent by then a quarter came by that spine
  EXPECT_EQ(network().counters().delivered_bytes, (1'400 - dropped_.size()) * 3'900);
  network().CheckConservation();
}

}  // namespace
}  // namespace railyard::testing
