// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/load_store/load_store_transport.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/flow/flow_network.h"
#include "simulator/units/units.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Three GPUs of an H100 island: four planes of 5, 4, 4 and 5 links of 200 Gb/s.
constexpr std::array<uint32_t, 4> kLinks = {5, 4, 4, 5};
constexpr uint64_t kRound = 18;  // packets that cross the planes exactly in that ratio
constexpr int64_t kCableDelayPs = 20'000;
constexpr int64_t kForwardPs = 300'000;
// A packet of 4,096 B is ceil(4,096,000 / 824) = 4,971 B on the wire.
constexpr uint64_t kPayload = 4'096;
constexpr uint64_t kWire = 4'971;
constexpr std::array<int64_t, 4> kPacketPs = {39'768, 49'710, 49'710, 39'768};
constexpr int64_t kRoundPs = 5 * kPacketPs[0];  // and 4 x 49,710: every plane is busy as long
constexpr int64_t kBurstPs = 44'187;  // ceil(4 x 4,971 x 8,000 / 3,600): what a port paces

class LoadStoreTransportTest : public testing::TransportFixture {
 protected:
  // `slow_plane` has cables of 10 us.
  void Build(int slow_plane = -1, int32_t gpus = 3) {
    for (int32_t gpu = 0; gpu < gpus; ++gpu) AddInServer(DeviceKind::kGpu, 0, gpu);
    for (int32_t plane = 0; plane < 4; ++plane) {
      const DeviceId nvswitch = AddInServer(DeviceKind::kNvSwitch, 0, plane, kForwardPs);
      const uint32_t links = kLinks[static_cast<size_t>(plane)];
      for (const DeviceId gpu : graph_.gpus()) {
        if (graph_.device(gpu).server != 0u) continue;
        graph_.AddCable(gpu, nvswitch,
                        {Tier::kNvlink, links * uint64_t{200'000'000'000},
                         plane == slow_plane ? 10'000'000 : kCableDelayPs, links});
      }
    }
    BuildTransports();
  }
  LinkId Up(int gpu, int plane) const { return Link(Gpu(gpu), Plane(plane)); }
  LinkId DownTo(int gpu, int plane) const { return Link(Plane(plane), Gpu(gpu)); }
  uint64_t PacketsTo(int gpu) {
    uint64_t packets = 0;
    for (int plane = 0; plane < 4; ++plane) {
      packets += network().CountersOfLink(DownTo(gpu, plane)).packets;
    }
    return packets;
  }
  // One packet alone over a plane of five links.
  static int64_t AlonePs(uint64_t wire_bytes) {
    return 2 * (static_cast<int64_t>(wire_bytes) * 8 + kCableDelayPs) + kForwardPs;
  }
  // The end of `rounds` rounds of full packets that a port starts at 0: every plane must carry its
  // share and then deliver its last packet; the spread over planes delays none of them by more than
  // one packet.
  static void ExpectEndOfRounds(int64_t end_ps, int64_t rounds) {
    const int64_t slowest_ps = *std::max_element(kPacketPs.begin(), kPacketPs.end());
    const int64_t bound_ps = rounds * kRoundPs + slowest_ps + 2 * kCableDelayPs + kForwardPs;
    EXPECT_GE(end_ps, bound_ps);
    EXPECT_LE(end_ps, bound_ps + slowest_ps);
  }

 private:
  static std::string Gpu(int gpu) { return "server0/gpu" + std::to_string(gpu); }
  static std::string Plane(int plane) { return "server0/nvswitch" + std::to_string(plane); }
};

TEST_F(LoadStoreTransportTest, WireBytesArePayloadOverEfficiencyRoundedUp) {
  Build();
  EXPECT_EQ(load_store_->WireBytes(kPayload), kWire);
  EXPECT_EQ(load_store_->WireBytes(824), 1'000u);
  EXPECT_EQ(load_store_->WireBytes(825), 1'002u);
  EXPECT_EQ(load_store_->WireBytes(1), 2u);
}

TEST_F(LoadStoreTransportTest, OnePacketCrossesOnePlane) {
  Build();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  PostNvlink(flow, kPayload);
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{2 * (39'768 + 20'000) + 300'000, 7}));
  EXPECT_EQ(network().CountersOfLink(Up(0, 0)).payload_bytes, kPayload);
  EXPECT_EQ(network().CountersOfLink(Up(0, 0)).header_bytes, kWire - kPayload);
  EXPECT_EQ(load_store_->FirstUserOf(flow).number, 7u);
}

TEST_F(LoadStoreTransportTest, AMessageOfOneByteIsOnePacket) {
  Build();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), 1);
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{AlonePs(2), 7}));
  EXPECT_EQ(network().counters().packets, 1u);
  EXPECT_EQ(network().counters().injected_bytes, 1u);
  EXPECT_EQ(network().CountersOfLink(Up(0, 0)).header_bytes, 1u);
}

TEST_F(LoadStoreTransportTest, ALongMessageEndsWhenEveryPlaneHasCarriedItsShare) {
  Build();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), 100 * kRound * kPayload);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  ExpectEndOfRounds(delivered_[0].time_ps, 100);
  EXPECT_EQ(network().counters().delivered_bytes, 100 * kRound * kPayload);
  EXPECT_EQ(network().live_packets(), 0u);
}

// As flows (StoresAsFlows) messages take their bytes over the planes' rate of 3.6 Tb/s or their
// share of it, and then what the last packet takes beyond that.
class StoresAsFlowsTest : public LoadStoreTransportTest {
 protected:
  static constexpr uint64_t kPackets = 1'000;
  static constexpr double kWirePs = kPackets * kWire * 8'000 / 3'600.0;
  static constexpr double kLastPacketPs =
      2 * (39'768 + kCableDelayPs) + kForwardPs - kWire * 8'000 / 3'600.0;

  void BuildWithFlows() {
    Build();
    flows_.emplace(graph_, network());
    load_store_->CarryByFlows(*flows_);
  }
  void TearDown() override {
    LoadStoreTransportTest::TearDown();
    flows_.reset();
  }

 private:
  std::optional<FlowNetwork> flows_;
};

TEST_F(StoresAsFlowsTest, AMessageTakesItsBytesOverTheRateOfAllPlanes) {
  BuildWithFlows();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), kPackets * kPayload);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  EXPECT_NEAR(static_cast<double>(delivered_[0].time_ps), kWirePs + kLastPacketPs, 3);
  EXPECT_EQ(network().counters().delivered_bytes, kPackets * kPayload);
  EXPECT_EQ(network().counters().packets, 0u);
}

TEST_F(StoresAsFlowsTest, MessagesOfOneGpuShareItsLinks) {
  BuildWithFlows();
  for (const uint32_t to : {1u, 2u}) {
    PostNvlink(load_store_->Open(Me(to), GpuIndex{0}, GpuIndex{to}), kPackets * kPayload);
  }
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  for (const Reported& reported : delivered_) {
    EXPECT_NEAR(static_cast<double>(reported.time_ps), 2 * kWirePs + kLastPacketPs, 3);
  }
}

TEST_F(LoadStoreTransportTest, WholeRoundsCrossThePlanesExactlyInTheRatioOfTheirLinks) {
  Build();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), 10 * kRound * kPayload);
  engine().Run();
  for (int plane = 0; plane < 4; ++plane) {
    const uint64_t share = 10 * uint64_t{kLinks[static_cast<size_t>(plane)]};
    EXPECT_EQ(network().CountersOfLink(Up(0, plane)).packets, share);
    EXPECT_EQ(network().CountersOfLink(DownTo(1, plane)).packets, share);
    EXPECT_EQ(network().CountersOfLink(DownTo(1, plane)).payload_bytes, share * kPayload);
    EXPECT_EQ(network().CountersOfLink(DownTo(2, plane)).packets, 0u);
  }
}

TEST_F(LoadStoreTransportTest, ShortMessagesGoOnInTheRoundWhereTheLastOneStopped) {
  Build();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  on_delivered_ = [&](uint32_t) {
    if (delivered_.size() < 2 * kRound) PostNvlink(flow, 100);
  };
  PostNvlink(flow, 100);
  engine().Run();
  for (int plane = 0; plane < 4; ++plane) {
    EXPECT_EQ(network().CountersOfLink(Up(0, plane)).packets,
              2 * kLinks[static_cast<size_t>(plane)]);
  }
}

TEST_F(LoadStoreTransportTest, EveryProgramsFirstPacketTakesTheConnectionsFirstPlane) {
  Build();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  on_delivered_ = [&](uint32_t) {
    load_store_->StartOver(flow);
    if (delivered_.size() < 2 * kRound) PostNvlink(flow, 100);
  };
  PostNvlink(flow, 100);
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(Up(0, 0)).packets, 2 * kRound);
}

TEST_F(LoadStoreTransportTest, ConnectionsOfAGpuStartAtThePlanesInTheRatioOfTheirLinks) {
  Build();
  for (uint32_t i = 0; i < 2 * kRound; ++i)
    PostNvlink(load_store_->Open(Me(i), GpuIndex{0}, GpuIndex{1 + i % 2}), 100);
  engine().Run();
  for (int plane = 0; plane < 4; ++plane) {
    EXPECT_EQ(network().CountersOfLink(Up(0, plane)).packets,
              2 * kLinks[static_cast<size_t>(plane)]);
  }
}

TEST_F(LoadStoreTransportTest, AnyPartOfARoundIsWithinOnePacketOfItsShare) {
  Build();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  constexpr int64_t kPackets = kRound;
  on_delivered_ = [&](uint32_t) {
    const auto sent = static_cast<int64_t>(delivered_.size());
    for (int plane = 0; plane < 4; ++plane) {
      const auto crossed = static_cast<int64_t>(network().CountersOfLink(Up(0, plane)).packets);
      EXPECT_LT(std::abs(crossed * kPackets - sent * kLinks[static_cast<size_t>(plane)]), kPackets);
    }
    if (sent < 3 * kPackets) PostNvlink(flow, 1);
  };
  PostNvlink(flow, 1);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(3 * kRound));
}

TEST_F(LoadStoreTransportTest, TwoConnectionsOfAGpuShareItsPortFairly) {
  Build();
  load_store_->Post(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}),
                    MessageSize::OfData(50 * kRound * kPayload));
  PostNvlink(load_store_->Open(Me(8), GpuIndex{0}, GpuIndex{2}), 50 * kRound * kPayload);
  for (int64_t time_ps = 0; time_ps < 100 * kRoundPs; time_ps += 50'000) {
    At(time_ps, [this] {
      const auto to_1 = static_cast<int64_t>(PacketsTo(1));
      const auto to_2 = static_cast<int64_t>(PacketsTo(2));
      EXPECT_LE(std::abs(to_1 - to_2), 2 * 4);  // bursts of four
    });
  }
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  ExpectEndOfRounds(delivered_[1].time_ps, 100);
  EXPECT_LE(delivered_[1].time_ps - delivered_[0].time_ps, 2 * kBurstPs + kPacketPs[1]);
}

TEST_F(LoadStoreTransportTest, ConnectionsOfDifferentGpusDoNotShareAPort) {
  Build();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{2}), 50 * kRound * kPayload);
  PostNvlink(load_store_->Open(Me(8), GpuIndex{2}, GpuIndex{1}), 50 * kRound * kPayload);
  PostNvlink(load_store_->Open(Me(9), GpuIndex{1}, GpuIndex{0}), 50 * kRound * kPayload);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(3));
  for (const Reported& reported : delivered_) ExpectEndOfRounds(reported.time_ps, 50);
}

TEST_F(LoadStoreTransportTest, TwoSendersToOneGpuHalveItsLinks) {
  Build();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{2}), 50 * kRound * kPayload);
  PostNvlink(load_store_->Open(Me(8), GpuIndex{1}, GpuIndex{2}), 50 * kRound * kPayload);
  engine().Run();
  // They queue in the planes instead of at a port: 100 rounds arrive, after the first packet's way.
  ASSERT_THAT(delivered_, SizeIs(2));
  ExpectEndOfRounds(delivered_[1].time_ps, 100);
}

// Every GPU sends to every other one: all links into and out of all GPUs are full until the end, so
// the NVSwitches pass half of what all links carry from any half of the GPUs to the other.
TEST_F(LoadStoreTransportTest, AllToAllRunsAtFullBisection) {
  constexpr uint32_t kGpus = 8;
  constexpr uint64_t kRounds = 20;
  Build(-1, kGpus);
  for (uint32_t step = 1; step < kGpus; ++step) {
    for (GpuIndex gpu{0}; gpu < kGpus; ++gpu) {
      const uint32_t to = (gpu + step) % kGpus;
      load_store_->Post(load_store_->Open(Me(gpu * kGpus + to), gpu, GpuIndex{to}),
                        MessageSize::OfData(kRounds * kRound * kPayload));
    }
  }
  load_store_->ServeDue();
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(kGpus * (kGpus - 1)));
  constexpr int64_t kBoundPs = (kGpus - 1) * kRounds * kRoundPs;
  EXPECT_GE(delivered_.back().time_ps, kBoundPs);
  EXPECT_LE(delivered_.back().time_ps, kBoundPs + kBoundPs / 50);
  for (int gpu = 0; gpu < static_cast<int>(kGpus); ++gpu) {
    EXPECT_EQ(PacketsTo(gpu), (kGpus - 1) * kRounds * kRound);
  }
}

TEST_F(LoadStoreTransportTest, MessagesAreDeliveredInTheirOrderThoughPlanesDifferInDelay) {
  Build(0);
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  // The first packet of a round takes plane 0, which is slow; the second one plane 3.
  PostNvlink(flow, kPayload);
  PostNvlink(flow, kPayload);
  engine().Run();
  const int64_t slow_ps = 2 * (39'768 + 10'000'000) + 300'000;
  EXPECT_THAT(delivered_, ElementsAre(Reported{slow_ps, 7}, Reported{slow_ps, 7}));
  EXPECT_EQ(network().CountersOfLink(Up(0, 3)).packets, 1u);
}

TEST_F(LoadStoreTransportTest, AMessageIsDeliveredWithItsLatestPacketNotItsLast) {
  Build(0);
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), 2 * kPayload);
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{2 * (39'768 + 10'000'000) + 300'000, 7}));
}

TEST_F(LoadStoreTransportTest, AConnectionHasEightMessagesUnderWayAtMost) {
  Build();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  for (int i = 0; i < 8; ++i) PostNvlink(flow, kPayload);
  EXPECT_DEATH(PostNvlink(flow, kPayload), "more messages than slots");
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(8));
  PostNvlink(flow, kPayload);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(9));
}

TEST_F(LoadStoreTransportTest, SlotsAreReusedForTensOfThousandsOfMessages) {
  Build();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  constexpr size_t kMessages = 20'000;
  size_t posted = 8;
  on_delivered_ = [&](uint32_t) {
    if (posted < kMessages) PostNvlink(flow, 1 + posted++ % 10'000);
  };
  uint64_t bytes = 0;
  for (size_t i = 0; i < kMessages; ++i) bytes += i < 8 ? 4'097 : 1 + i % 10'000;
  for (int i = 0; i < 8; ++i) PostNvlink(flow, 4'097);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(kMessages));
  EXPECT_EQ(network().counters().delivered_bytes, bytes);
  EXPECT_EQ(network().live_packets(), 0u);
}

TEST_F(LoadStoreTransportTest, APacketLostBreaksItsConnectionAsXid74) {
  Build();
  Down(Up(0, 0), 10'000, 10'001);
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), kPayload);
  engine().Run();
  const int64_t lost_ps = 39'768 + kCableDelayPs + kForwardPs;
  EXPECT_THAT(lost_, ElementsAre(ReportedLoss{lost_ps, 7, Up(0, 0)}));
  EXPECT_THAT(
      errors_,
      ElementsAre(ReportedError{
          lost_ps, 7, "an NVLink lost a packet; the GPU reports a fatal link error (Xid 74)"}));
  EXPECT_THAT(delivered_, IsEmpty());
  ExpectConservation();
}

TEST_F(LoadStoreTransportTest, ALinkThatCarriesNothingOfAConnectionDoesNotBreakIt) {
  Build();
  for (int plane = 0; plane < 4; ++plane) Down(Up(2, plane), 0, kNeverPs);
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), kRound * kPayload);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(1));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(LoadStoreTransportTest, APairsPathsAreItsPlanesWithTheirLinksAsWeights) {
  Build();
  const auto paths = load_store_->PathsOf(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}));
  ASSERT_EQ(paths.size(), 4u);
  for (int plane = 0; plane < 4; ++plane) {
    const auto& of_plane = paths[static_cast<size_t>(plane)];
    EXPECT_EQ(of_plane.weight, kLinks[static_cast<size_t>(plane)]);
    ASSERT_EQ(of_plane.path.hop_count, 2);
    EXPECT_EQ(network().paths().LinkOf(of_plane.path, 0), Up(0, plane));
    EXPECT_EQ(network().paths().LinkOf(of_plane.path, 1), DownTo(1, plane));
  }
}

// Two GPUs and no NVSwitch: cables of two lanes and of one. Three packets are a round, and each
// cable carries its share in equal time; a packet takes its serialisation and the cable.
TEST_F(LoadStoreTransportTest, GpusWithoutAnNvSwitchUseTheCablesBetweenThem) {
  AddInServer(DeviceKind::kGpu, 0, 0);
  AddInServer(DeviceKind::kGpu, 0, 1);
  for (const uint32_t lanes : {2u, 1u}) {
    graph_.AddCable(graph_.gpus()[0], graph_.gpus()[1],
                    {Tier::kNvlink, lanes * uint64_t{200'000'000'000}, kCableDelayPs, lanes});
  }
  BuildTransports();
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1});
  PostNvlink(flow, 30 * kPayload);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  constexpr int64_t kOnTwoLanesPs = 99'420;  // 4,971 B at 400 Gb/s
  EXPECT_GE(delivered_[0].time_ps, 20 * kOnTwoLanesPs + kCableDelayPs);
  EXPECT_LE(delivered_[0].time_ps, 22 * kOnTwoLanesPs + kCableDelayPs);
  const auto paths = load_store_->PathsOf(flow);
  ASSERT_THAT(paths, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(paths[i].path.hop_count, 1);
    EXPECT_EQ(network().CountersOfLink(network().paths().LinkOf(paths[i].path, 0)).packets,
              i == 0 ? 20u : 10u);
  }
}

TEST_F(LoadStoreTransportTest, PacketSizeAndEfficiencyAreTheFabrics) {
  graph_.nvlink = {.packet_payload_bytes = 1'000, .efficiency_per_mille = 500};
  Build();
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), 18'000);
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(Up(0, 0)).packets, 5u);
  EXPECT_EQ(network().CountersOfLink(Up(0, 0)).header_bytes, 5'000u);
}

TEST_F(LoadStoreTransportTest, GpusOfDifferentIslandsAndMessagesOfNothingOr4GiBAreProgramErrors) {
  AddInServer(DeviceKind::kGpu, 1, 0);
  Build();
  EXPECT_DEATH(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), "neither NVLink nor PCIe joins");
  const FlowId flow = load_store_->Open(Me(7), GpuIndex{1}, GpuIndex{2});
  EXPECT_DEATH(PostNvlink(flow, 0), "of no bytes");
  EXPECT_DEATH(PostNvlink(flow, uint64_t{1} << 32), "of 4 GiB or more");
}

}  // namespace
}  // namespace railyard
