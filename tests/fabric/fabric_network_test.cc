// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/fabric_network.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// nic0 - a - b - c - nic1, every link of its own rate and delay.
//   nic0-a:  400 Gb/s, 20 ps a byte          1 ns   a forwards in 500 ns
//   a-b:     100 Gb/s, 80 ps a byte         10 ns   b forwards in 0
//   b-c:       3 Gb/s, 8000/3 ps a byte    100 ns   c forwards in 7 ps
//   c-nic1:  200 Gb/s, 40 ps a byte         13 ps   the NIC receives without forwarding
class FabricNetworkTest : public testing::NetworkFixture {
 protected:
  void SetUp() override {
    const DeviceId nic0 = AddInServer(DeviceKind::kNic, 0, 0, 99'999);
    const DeviceId a = AddSwitch("a", 500'000);
    const DeviceId b = AddSwitch("b", 0);
    const DeviceId c = AddSwitch("c", 7);
    const DeviceId nic1 = AddInServer(DeviceKind::kNic, 1, 0, 99'999);
    graph_.AddCable(nic0, a, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
    graph_.AddCable(a, b, {Tier::kLeafSpine, 100'000'000'000, 10'000, 1});
    graph_.AddCable(b, c, {Tier::kLeafSpine, 3'000'000'000, 100'000, 1});
    graph_.AddCable(c, nic1, {Tier::kNicLeaf, 200'000'000'000, 13, 1});
    BuildNetwork();
    links_ = {Link("server0/nic0", "a"), Link("a", "b"), Link("b", "c"), Link("c", "server1/nic0")};
    chain_ = network().AddPath(links_);
  }

  std::vector<LinkId> links_;
  PathRef chain_;
};

TEST_F(FabricNetworkTest, StoreAndForwardTakesTheSumOfSerialisationPropagationAndForwarding) {
  // 1,000 B: 20,000 + 80,000 + ceil(8,000,000 / 3) = 2,666,667 + 40,000.
  const int64_t serialisation_ps = 20'000 + 80'000 + 2'666'667 + 40'000;
  const int64_t delay_ps = 1'000 + 500'000 + 10'000 + 100'000 + 7 + 13;
  Inject(chain_, 1, 1'000, 900);
  engine().Run();
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{serialisation_ps + delay_ps, 0, 1}));
  EXPECT_EQ(network().PathLatencyPs(chain_, 1'000), serialisation_ps + delay_ps);
  EXPECT_EQ(network().PathLatencyPs(chain_, 0), delay_ps);
}

TEST_F(FabricNetworkTest, APacketSentLaterArrivesAsMuchLater) {
  const int64_t alone_ps = network().PathLatencyPs(chain_, 64);
  At(123'456, [this] { Inject(chain_, 1, 64); });
  engine().Run();
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{123'456 + alone_ps, 0, 1}));
}

TEST_F(FabricNetworkTest, PacketsOfDifferentSizesQueueInOrderAtEveryPort) {
  // On one hop: the end of each is the sum of all before it. The sizes go up, down and repeat.
  const PathRef hop = network().AddPath({links_[3]});
  const std::vector<uint32_t> sizes = {100, 1'500, 64, 64, 4'178, 100};
  std::vector<Arrived> expected;
  int64_t end_ps = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    Inject(hop, i, sizes[i]);
    end_ps += 40 * int64_t{sizes[i]};
    expected.push_back({end_ps + 13, 0, i});
  }
  EXPECT_EQ(network().BusyUntilPs(links_[3]), end_ps);
  engine().Run();
  EXPECT_EQ(at_nic_, expected);
}

TEST_F(FabricNetworkTest, ASlowLinkInTheMiddleSpacesPacketsByItsOwnSerialisation) {
  // All wait at b-c but the first, which meets every queue empty.
  for (uint32_t i = 0; i < 5; ++i) Inject(chain_, i, 1'000);
  engine().Run();
  std::vector<Arrived> expected;
  for (uint32_t i = 0; i < 5; ++i) {
    expected.push_back({network().PathLatencyPs(chain_, 1'000) + int64_t{i} * 2'666'667, 0, i});
  }
  EXPECT_EQ(at_nic_, expected);
}

TEST_F(FabricNetworkTest, AnIdleLinkDoesNotSaveUpTime) {
  const PathRef hop = network().AddPath({links_[3]});
  Inject(hop, 0, 1'000);
  At(39'999, [&] { Inject(hop, 1, 1'000); });   // the first one's last bit leaves at 40,000
  At(100'000, [&] { Inject(hop, 2, 1'000); });  // the second one's at 80,000
  engine().Run();
  EXPECT_THAT(at_nic_,
              ElementsAre(Arrived{40'013, 0, 0}, Arrived{80'013, 0, 1}, Arrived{140'013, 0, 2}));
}

TEST_F(FabricNetworkTest, DirectionsOfACableDoNotDelayEachOther) {
  const LinkId back = graph_.ReverseLink(links_[0]);
  Inject(network().AddPath({links_[3]}), 0, 1'000);
  Inject(network().AddPath({back}), 1, 1'000);
  engine().Run();
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{21'000, 0, 1}, Arrived{40'013, 0, 0}));
}

TEST_F(FabricNetworkTest, EveryLinkCountsPayloadHeadersAndRepeatsThatCrossedIt) {
  Inject(chain_, 0, 1'082, 1'000);
  Inject(chain_, 1, 582, 500);
  Inject(chain_, 1, 582, 500, PacketKind::kNetworkData, Packet::kRetransmitted);
  Inject(chain_, 2, 86, 0, PacketKind::kAck);
  Inject(chain_, 3, 162, 64, PacketKind::kClearToSend);
  engine().Run();
  for (const LinkId link : links_) {
    const LinkCounters counters = network().CountersOfLink(link);
    EXPECT_EQ(counters.payload_bytes, 1'500u);
    EXPECT_EQ(counters.retransmitted_bytes, 500u);
    EXPECT_EQ(counters.header_bytes, 3 * 82u + 86u + 162u);
    EXPECT_EQ(counters.packets, 5u);
    EXPECT_EQ(counters.dropped_packets, 0u);
    EXPECT_EQ(network().CountersOfLink(graph_.ReverseLink(link)).packets, 0u);
  }
  EXPECT_EQ(network().counters().packets, 3u);
  EXPECT_EQ(network().counters().packet_hops, 3 * 4u);
  EXPECT_EQ(network().counters().control_hops, 2 * 4u);
  EXPECT_EQ(network().counters().injected_bytes, 2'000u);
  EXPECT_EQ(network().counters().delivered_bytes, 2'000u);
}

TEST_F(FabricNetworkTest, BytesAreConservedAtEveryInstantOfARun) {
  for (uint32_t i = 0; i < 20; ++i) Inject(chain_, i, 1'082, 1'000);
  Inject(chain_, 20, 86, 0, PacketKind::kAck);
  Down(links_[2], 10'000'000, 12'000'000);
  // Packet i ends at (i + 1) x ceil(1,082 x 8,000 / 3), some 2.885 us, after the first hops.
  for (int64_t time_ps = 0; time_ps < 60'000'000; time_ps += 500'000) {
    At(time_ps, [this] { ExpectConservation(); });
  }
  uint64_t in_flight_at_5us = 0;
  At(5'000'000, [&] { in_flight_at_5us = network().InFlightBytes(); });
  engine().Run();
  EXPECT_EQ(in_flight_at_5us, 19'000u);
  EXPECT_EQ(network().InFlightBytes(), 0u);
  EXPECT_EQ(network().live_packets(), 0u);
  EXPECT_GT(network().counters().dropped_data_bytes(), 0u);
  ExpectConservation();
}

TEST_F(FabricNetworkTest, APathOfNoLinksDropsThePacketAtOnceForWantOfARoute) {
  Inject(PathRef{}, 5, 1'082, 1'000);
  EXPECT_THAT(dropped_, ElementsAre(Dropped{0, 0, 5, DropReason::kNoRoute, LinkId::kNone}));
  const NetworkCounters& counters = network().counters();
  EXPECT_EQ(counters.dropped_packets[static_cast<size_t>(DropReason::kNoRoute)], 1u);
  EXPECT_EQ(counters.dropped_bytes[static_cast<size_t>(DropReason::kNoRoute)], 1'000u);
  EXPECT_EQ(counters.packets, 1u);
  EXPECT_EQ(counters.packet_hops, 0u);
  EXPECT_EQ(network().live_packets(), 0u);
  ExpectConservation();
}

TEST_F(FabricNetworkTest, AControlPacketsPayloadIsNoDataWhereItIsLost) {
  Inject(PathRef{}, 0, 162, 64, PacketKind::kClearToSend);
  EXPECT_EQ(network().counters().dropped_packets[static_cast<size_t>(DropReason::kNoRoute)], 1u);
  EXPECT_EQ(network().counters().dropped_data_bytes(), 0u);
  ExpectConservation();
}

TEST_F(FabricNetworkTest, TheLedgerOfDropsAddsAllReasonsUp) {
  NetworkCounters counters;
  counters.dropped_bytes = {1, 20, 300, 4'000};
  EXPECT_EQ(counters.dropped_data_bytes(), 4'321u);
}

TEST_F(FabricNetworkTest, PacketsAreReusedBeforeThePoolGrows) {
  std::set<uint32_t> indices;
  for (int round = 0; round < 1'000; ++round) {
    std::vector<PacketId> taken;
    for (int i = 0; i < 30; ++i) taken.push_back(network().AllocatePacket());
    EXPECT_EQ(network().live_packets(), 30u);
    indices.insert(taken.begin(), taken.end());
    for (const PacketId index : taken) network().FreePacket(index);
  }
  EXPECT_EQ(indices.size(), 30u);
  EXPECT_EQ(network().live_packets(), 0u);
}

TEST_F(FabricNetworkTest, PacketsUnderWaySurviveTheGrowthOfThePool) {
  // 10,000 packets on one link: the pool grows twice while the first are queued.
  const PathRef hop = network().AddPath({links_[3]});
  std::set<uint32_t> indices;
  for (uint32_t i = 0; i < 10'000; ++i) indices.insert(Inject(hop, i, 100, 18));
  EXPECT_EQ(indices.size(), 10'000u);
  EXPECT_EQ(network().InFlightBytes(), 180'000u);
  engine().Run();
  ASSERT_EQ(at_nic_.size(), 10'000u);
  for (uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_EQ(at_nic_[i], (Arrived{int64_t{4'000} * (i + 1) + 13, 0, i}));
  }
}

TEST_F(FabricNetworkTest, APathNamesItsLinksInOrder) {
  for (uint32_t hop = 0; hop < 4; ++hop) {
    EXPECT_EQ(network().paths().LinkOf(chain_, hop), links_[hop]);
  }
  EXPECT_EQ(chain_.hop_count, 4);
  EXPECT_EQ(network().AddPath({}).hop_count, 0);
}

TEST_F(FabricNetworkTest, APathIsAtMost255Links) {
  EXPECT_EQ(network().AddPath(std::vector<LinkId>(255, links_[0])).hop_count, 255);
  EXPECT_DEATH(network().AddPath(std::vector<LinkId>(256, links_[0])), "more than 255 links");
}

TEST(DropReasonTest, EveryReasonHasItsName) {
  EXPECT_STREQ(DropReasonName(DropReason::kLinkDown), "LINK_DOWN");
  EXPECT_STREQ(DropReasonName(DropReason::kNoRoute), "NO_ROUTE");
  EXPECT_STREQ(DropReasonName(DropReason::kOutOfSequence), "OUT_OF_SEQUENCE");
  EXPECT_STREQ(DropReasonName(DropReason::kDuplicate), "DUPLICATE");
  std::set<std::string> names;
  for (int reason = 0; reason < kDropReasonCount; ++reason) {
    names.insert(DropReasonName(static_cast<DropReason>(reason)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kDropReasonCount));
  EXPECT_FALSE(names.contains(""));
}

// --- Ends of paths ---------------------------------------------------------------------------

// gpu0 - nic0 - leaf - nic1 - gpu1: every cable 400 Gb/s and 1 ns, NICs forward in 200 ns.
class PathEndTest : public testing::NetworkFixture {
 protected:
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf", 500'000);
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0, 200'000);
      graph_.AddCable(gpu, nic, {Tier::kHost, 400'000'000'000, 1'000, 1});
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
    }
    BuildNetwork();
  }
  void OnPacketAtNic(PacketId index) override {
    at_nic_.push_back({engine().NowPs(), 0, network().packet(index).sequence});
    network().SendOn(index);
  }
};

TEST_F(PathEndTest, ANicForwardsFromItsGpuAndIsAskedAboutWhatComesFromTheWire) {
  const PathRef path =
      network().AddPath({Link("server0/gpu0", "server0/nic0"), Link("server0/nic0", "leaf"),
                         Link("leaf", "server1/nic0"), Link("server1/nic0", "server1/gpu0")});
  Inject(path, 1, 1'000, 900);
  engine().Run();
  const int64_t at_nic_ps = 3 * (20'000 + 1'000) + 200'000 + 500'000;
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{at_nic_ps, 0, 1}));
  EXPECT_THAT(at_gpu_, ElementsAre(Arrived{at_nic_ps + 21'000, 0, 1}));
  EXPECT_EQ(network().PathLatencyPs(path, 1'000), at_nic_ps + 21'000);
  EXPECT_THAT(dropped_, IsEmpty());
}

}  // namespace
}  // namespace railyard
