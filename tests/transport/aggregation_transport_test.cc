// SPDX-License-Identifier: GPL-2.0-only
// Reduction in the network's switches: what crosses which link, when, and what loss does.
#include "simulator/transport/aggregation/aggregation_transport.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/enum.h>

#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Two servers of one GPU at each of two leaves, under a spine; 400 Gb/s, 20 ps a byte.
class AggregationTransportTest : public testing::TransportFixture {
 protected:
  static constexpr int64_t kCablePs = 1'000;
  static constexpr int64_t kForwardPs = 500'000;
  static constexpr int64_t kBytePs = 20;
  static constexpr uint64_t kMtu = 4'096;
  static constexpr int64_t kPacketPs = (4'096 + 26) * kBytePs;

  void SetUp() override {
    const DeviceId spine = AddSwitch("spine0", kForwardPs);
    for (int32_t leaf = 0; leaf < 2; ++leaf) {
      const DeviceId at = AddSwitch("leaf" + std::to_string(leaf), kForwardPs);
      graph_.AddCable(at, spine, {Tier::kLeafSpine, 400'000'000'000, kCablePs, 1});
      for (int32_t server = 2 * leaf; server < 2 * leaf + 2; ++server) {
        const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
        const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
        graph_.AddCable(gpu, nic, {Tier::kHost, 400'000'000'000, kCablePs, 1});
        graph_.AddCable(nic, at, {Tier::kNicLeaf, 400'000'000'000, kCablePs, 1});
      }
    }
  }

  // One tree over all; connections are numbered as the GPUs.
  void Build(PortForm form = PortForm::kShort) {
    BuildTransports();
    network().SetAttribute("NetworkFlowControl",
                           ns3::EnumValue(static_cast<int>(FlowControl::kCredits)));
    network().SetAttribute("Form", ns3::EnumValue(static_cast<int>(form)));
    network().Configure();
    NicSettings nic;
    nic.is_infiniband = true;
    transport_.emplace(graph_, network(), *routing_, nic);
    std::vector<GpuIndex> gpus(graph_.gpus().size());
    std::iota(gpus.begin(), gpus.end(), GpuIndex{0});
    first_ = transport_->OpenTree(gpus, 7);
    for (const GpuIndex gpu : gpus) transport_->Join(FlowOf(gpu), Me(gpu));
  }
  FlowId FlowOf(GpuIndex gpu) const { return FlowId{first_ + gpu}; }
  void PostAll(const Aggregation& operation) {
    for (GpuIndex gpu{0}; gpu < 4; ++gpu) transport_->Post(FlowOf(gpu), operation);
  }
  void PostAll(uint64_t bytes) { PostAll(Aggregation{.bytes = bytes}); }
  uint64_t PayloadOn(const char* from, const char* to) {
    return network().CountersOfLink(Link(from, to)).payload_bytes;
  }

  void OnPacketAtNic(PacketId packet) override { transport_->OnPacketAtNic(packet); }
  void OnPacketInMemory(PacketId packet) override { transport_->OnPacketInMemory(packet); }
  void OnLinkReleased(LinkId link) override { transport_->OnLinkReleased(link); }
  void OnPacketDropped(PacketId index, DropReason reason, LinkId link) override {
    NoteDropped(index, reason, link);
    transport_->OnPacketDropped(index, reason, link);
  }

  std::optional<AggregationTransport> transport_;
  FlowId first_;
};

// S goes out of every NIC and comes in again; between switches one sum each way, whatever is below.
TEST_F(AggregationTransportTest, EveryLinkOfTheTreeCarriesTheSumOnceEachWay) {
  for (const PortForm form : {PortForm::kShort, PortForm::kGeneral}) {
    Build(form);
    constexpr uint64_t kBytes = 10 * kMtu + 100;
    PostAll(kBytes);
    PostAll(0);
    ns3::Simulator::Run();
    for (const char* nic : {"server0/nic0", "server1/nic0"}) {
      EXPECT_EQ(PayloadOn(nic, "leaf0"), kBytes);
      EXPECT_EQ(PayloadOn("leaf0", nic), kBytes);
    }
    for (const char* leaf : {"leaf0", "leaf1"}) {
      EXPECT_EQ(PayloadOn(leaf, "spine0"), kBytes);
      EXPECT_EQ(PayloadOn("spine0", leaf), kBytes);
    }
    EXPECT_EQ(PayloadOn("server3/nic0", "server3/gpu0"), kBytes);
    // Two messages to each of four.
    EXPECT_THAT(delivered_, SizeIs(8));
    network().CheckConservation();
    const NetworkCounters& counters = network().counters();
    EXPECT_EQ(counters.injected_bytes, 4 * kBytes);
    EXPECT_EQ(counters.delivered_bytes, 4 * kBytes);
    EXPECT_EQ(counters.reduced_bytes, counters.replicated_bytes);
    EXPECT_EQ(network().live_packets(), 0u);
    delivered_.clear();
    TearDown();
  }
}

// The root is the first NIC's leaf, which waits for the packets of the other leaf: four links up to
// it, then two down to its own servers and four to the others.
TEST_F(AggregationTransportTest, APacketTakesTheWayToTheRootAndBack) {
  Build();
  PostAll(kMtu);
  ns3::Simulator::Run();
  const int64_t to_root_ps = 4 * (kPacketPs + kCablePs) + 2 * kForwardPs;
  const int64_t near_ps = to_root_ps + kForwardPs + 2 * (kPacketPs + kCablePs);
  const int64_t far_ps = to_root_ps + 3 * kForwardPs + 4 * (kPacketPs + kCablePs);
  EXPECT_THAT(delivered_, UnorderedElementsAre(Reported{near_ps, 0}, Reported{near_ps, 1},
                                               Reported{far_ps, 2}, Reported{far_ps, 3}));
}

TEST_F(AggregationTransportTest, NobodyGetsAResultBeforeTheLastOperand) {
  Build();
  for (const GpuIndex gpu : {GpuIndex{0}, GpuIndex{1}, GpuIndex{2}})
    transport_->Post(FlowOf(gpu), {.bytes = 3 * kMtu});
  At(50'000'000, [this] {
    EXPECT_THAT(delivered_, IsEmpty());
    transport_->Post(FlowOf(GpuIndex{3}), {.bytes = 3 * kMtu});
  });
  ns3::Simulator::Run();
  EXPECT_THAT(delivered_, SizeIs(4));
}

// Blocks of GPUs 1 and 2: a block crosses the links from its GPU up to the root once, and all links
// down; whether its packets come before the empty ones of the others or after them.
TEST_F(AggregationTransportTest, WhatOneGivesAllGet) {
  constexpr uint64_t kBlock = 10 * kMtu + 100;
  constexpr Aggregation kGather = {
      .kind = Aggregation::Kind::kGather, .bytes = 2 * kBlock, .blocks = 2, .owner = 1};
  for (const PortForm form : {PortForm::kShort, PortForm::kGeneral}) {
    for (const bool owners_are_first : {true, false}) {
      Build(form);
      const auto post = [&](bool owners) {
        for (GpuIndex gpu{0}; gpu < 4; ++gpu) {
          if ((gpu == 1 || gpu == 2) == owners) transport_->Post(FlowOf(gpu), kGather);
        }
      };
      post(owners_are_first);
      At(50'000'000, [&] {
        EXPECT_THAT(delivered_, IsEmpty());
        post(!owners_are_first);
      });
      ns3::Simulator::Run();
      EXPECT_EQ(PayloadOn("server0/nic0", "leaf0"), 0u);
      EXPECT_EQ(PayloadOn("server1/nic0", "leaf0"), kBlock);
      EXPECT_EQ(PayloadOn("leaf1", "spine0"), kBlock);
      EXPECT_EQ(PayloadOn("spine0", "leaf0"), kBlock);
      for (const char* leaf : {"leaf0", "leaf1"}) {
        const std::string first = leaf == std::string("leaf0") ? "server0/nic0" : "server2/nic0";
        EXPECT_EQ(PayloadOn(leaf, first.c_str()), 2 * kBlock);
      }
      EXPECT_EQ(PayloadOn("spine0", "leaf1"), 2 * kBlock);
      EXPECT_EQ(PayloadOn("server1/nic0", "server1/gpu0"), 2 * kBlock);
      EXPECT_THAT(delivered_, SizeIs(4));
      network().CheckConservation();
      EXPECT_EQ(network().counters().injected_bytes, 2 * kBlock);
      EXPECT_EQ(network().counters().delivered_bytes, 4 * (2 * kBlock));
      EXPECT_EQ(network().live_packets(), 0u);
      delivered_.clear();
      TearDown();
    }
  }
}

// The sums of blocks for GPUs 2 and 3: all blocks up every link to the root, and down those to
// their GPUs alone.
TEST_F(AggregationTransportTest, WhatAllGiveOneGets) {
  constexpr uint64_t kBlock = 10 * kMtu + 100;
  for (const PortForm form : {PortForm::kShort, PortForm::kGeneral}) {
    Build(form);
    PostAll(Aggregation{
        .kind = Aggregation::Kind::kScatter, .bytes = 2 * kBlock, .blocks = 2, .owner = 2});
    ns3::Simulator::Run();
    for (const char* nic : {"server0/nic0", "server1/nic0"}) {
      EXPECT_EQ(PayloadOn(nic, "leaf0"), 2 * kBlock);
      EXPECT_EQ(PayloadOn("leaf0", nic), 0u);
    }
    EXPECT_EQ(PayloadOn("leaf1", "spine0"), 2 * kBlock);
    EXPECT_EQ(PayloadOn("spine0", "leaf1"), 2 * kBlock);
    EXPECT_EQ(PayloadOn("leaf1", "server2/nic0"), kBlock);
    EXPECT_EQ(PayloadOn("server3/nic0", "server3/gpu0"), kBlock);
    EXPECT_THAT(delivered_, SizeIs(4));
    network().CheckConservation();
    EXPECT_EQ(network().counters().injected_bytes, 4 * (2 * kBlock));
    EXPECT_EQ(network().counters().delivered_bytes, 2 * kBlock);
    EXPECT_EQ(network().live_packets(), 0u);
    delivered_.clear();
    TearDown();
  }
}

// No more than a window of packets is on its way without a result.
TEST_F(AggregationTransportTest, AMemberKeepsToItsWindow) {
  Build();
  const NicSettings nic;
  transport_->Post(first_, {.bytes = 4 * nic.window_bytes});
  ns3::Simulator::Run();
  EXPECT_EQ(PayloadOn("server0/nic0", "leaf0"), nic.window_bytes);
  EXPECT_THAT(delivered_, IsEmpty());
}

TEST_F(AggregationTransportTest, ALostPacketBreaksTheTree) {
  Build();
  PostAll(100 * kMtu);
  Down(Link("leaf1", "spine0"), 3'000'000, 3'000'001);
  ns3::Simulator::Run();
  ASSERT_FALSE(errors_.empty());
  EXPECT_EQ(errors_.front().connection, 0u);
  EXPECT_EQ(errors_.front().why,
            "an aggregation tree of 4 NICs lost a packet, which SHARP does not survive");
  EXPECT_EQ(lost_.front().link, Link("leaf1", "spine0"));
}

}  // namespace
}  // namespace railyard
