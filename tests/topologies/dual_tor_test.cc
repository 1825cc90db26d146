// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/dual_tor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "topologies/platforms/platform.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Radix;
using testing::Switches;

std::vector<std::string> Problems(const DualTorSpec& spec) {
  return testing::Lines(CheckDualTor(spec));
}

DualTorSpec Small(uint32_t planes) {
  return {.network = {.servers = {{.count = 8}}},
          .planes = planes,
          .servers_per_segment = 4,
          .aggs_per_plane = 3};
}

// Qian et al., SIGCOMM 2024, section 5.2 and table 4: aggregation switches of 51.2 Tb/s have 128
// ports of 400 Gb/s, 8 of them to the core (15:1).
TEST(DualTorTest, PodsHaveTheSizesThatHpnStates) {
  // The spec's defaults are these: an agg of a pod sees 8 ToRs of each of 15 segments.
  const DualTorSpec hpn;
  EXPECT_EQ(hpn.segments_per_pod * 8, 120u);
  EXPECT_EQ(hpn.servers_per_segment * 8 * hpn.segments_per_pod, 15'360u);
}

// A ToR gives 128 ports of 200 Gb/s to hosts and 60 of 400 Gb/s to aggs: 1.067:1.
TEST(DualTorTest, AFullPodHasThePortsThatHpnStates) {
  ServerSpec server = ServerOfPlatform("hpn-h800");
  server.count = 128 * 15;
  const FabricGraph graph = MakeDualTor({.network = {.servers = {server}}});
  EXPECT_EQ(graph.gpus().size(), 15'360u);
  EXPECT_EQ(Radix(graph, "segment14/rail7/tor1"), 128 + 60u);
  EXPECT_EQ(Radix(graph, "pod0/plane1/agg59"), 120u);
  EXPECT_EQ(Switches(graph).size(), 15 * 16 + 2 * 60u);
}

TEST(DualTorTest, EveryNicHasAPortOnBothTorsOfItsRail) {
  const FabricGraph graph = MakeDualTor(Small(2));
  EXPECT_EQ(CablesOf(graph, Tier::kNicLeaf), 2 * 64u);
  EXPECT_TRUE(graph.FindCable("server5/nic3--segment1/rail3/tor0").has_value());
  EXPECT_TRUE(graph.FindCable("server5/nic3--segment1/rail3/tor1").has_value());
  EXPECT_TRUE(graph.FindCable("segment1/rail3/tor1--pod0/plane1/agg2").has_value());
  EXPECT_FALSE(graph.FindCable("segment1/rail3/tor1--pod0/plane0/agg2").has_value());
}

// Between ports with addresses of their own: by their cables whatever the entropy, and not at all
// without them.
TEST(DualTorTest, APathBetweenPortsKeepsToTheirCables) {
  const FabricGraph graph = MakeDualTor(Small(2));
  EcmpRouting routing(graph, 1);
  const DeviceId from = graph.FindDevice("server0/gpu3").value();
  const DeviceId to = graph.FindDevice("server5/gpu3").value();
  const auto wire = [&](const char* cable) {
    return graph.cables()[graph.FindCable(cable).value()].forward;
  };
  const LinkId first = wire("server0/nic3--segment0/rail3/tor1");
  const LinkId of_other = wire("server5/nic3--segment1/rail3/tor1");
  const PortPins pins = {.first = first, .last = graph.ReverseLink(of_other)};
  EXPECT_EQ(graph.WiresOfNic(graph.FindDevice("server0/nic3").value()),
            (std::vector<LinkId>{wire("server0/nic3--segment0/rail3/tor0"), first}));
  for (uint64_t entropy = 0; entropy < 20; ++entropy) {
    const Path path = routing.Resolve(from, to, entropy, pins);
    // PCIe, NIC to ToR, to an agg, to the other ToR, to the NIC, PCIe.
    ASSERT_EQ(path.size(), 6u);
    EXPECT_EQ(path[1], pins.first);
    EXPECT_EQ(path[4], pins.last);
  }
  for (const LinkId down : {pins.first, pins.last}) {
    routing.SetLinkUp(down, false);
    EXPECT_THAT(routing.Resolve(from, to, 7, pins), IsEmpty());
    EXPECT_EQ(routing.Resolve(from, to, 7).size(), 6u);
    routing.SetLinkUp(down, true);
  }
}

TEST(DualTorTest, PathsAreOnePerPortAndAggOfItsPlane) {
  const auto paths = [](uint32_t planes, const char* from, const char* to) {
    const FabricGraph graph = MakeDualTor(Small(planes));
    return EcmpRouting(graph, 1).CountShortestPaths(graph.FindDevice(from).value(),
                                                    graph.FindDevice(to).value());
  };
  EXPECT_EQ(paths(2, "server0/nic3", "server1/nic3"), 2u) << "one rail of a segment: two ToRs";
  EXPECT_EQ(paths(2, "server0/nic3", "server7/nic5"), 2 * 3u) << "2 planes of 3 aggs";
  EXPECT_EQ(paths(1, "server0/nic3", "server7/nic5"), 2 * 3 * 2u) << "and any ToR to any";
  EXPECT_EQ(paths(16, "server0/nic3", "server7/nic3"), 2 * 3u) << "a rail's own planes";
  EXPECT_EQ(paths(16, "server0/nic3", "server7/nic5"), 0u);
}

TEST(DualTorTest, CoresJoinPodsPlaneByPlane) {
  DualTorSpec spec = Small(2);
  spec.segments_per_pod = 1;
  spec.cores_per_plane = 2;
  const FabricGraph graph = MakeDualTor(spec);
  EXPECT_EQ(CablesOf(graph, Tier::kSpineCore), 2 * 2 * 3 * 2u);
  EXPECT_EQ(Radix(graph, "plane1/core1"), 2 * 3u);
}

TEST(CheckDualTorTest, EveryParameterHasItsMessage) {
  EXPECT_THAT(Problems({}), IsEmpty());
  EXPECT_THAT(Problems({.planes = 3}),
              ElementsAre("planes: 3 planes do not divide 16 ToRs per segment by port or rail "
                          "(expected 1, 2 or 16)"));
  EXPECT_THAT(Problems({.servers_per_segment = 0}),
              ElementsAre("servers_per_segment: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.segments_per_pod = 0}),
              ElementsAre("segments_per_pod: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.aggs_per_plane = 0}),
              ElementsAre("aggs_per_plane: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.cores_per_plane = 65'537}),
              ElementsAre("cores_per_plane: 65537 is out of range (expected 0 to 65536)"));
  EXPECT_THAT(Problems({.leaf_spine = {.count = 0}}),
              ElementsAre("leaf_spine.count: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.spine_core = {.rate_bps = 0}}),
              ElementsAre("spine_core.rate: 0 bps is out of range (expected 1Mbps to 100Tbps)"));
  EXPECT_THAT(Problems({.network = {.servers = {{.count = 2}}},
                        .servers_per_segment = 1,
                        .segments_per_pod = 1}),
              ElementsAre("cores_per_plane: 2 pods that no core joins (expected at least one core, "
                          "or at most 1 servers)"));
  // 16 ToRs x 60,000 aggs x 4 cables, and 8 x 4 + 8 + 16 in and at the server.
  EXPECT_THAT(Problems({.aggs_per_plane = 60'000, .leaf_spine = {.count = 4}}),
              ElementsAre("aggs_per_plane: the fabric would have 3840056 cables (expected at most "
                          "2000000)"));
}

}  // namespace
}  // namespace railyard
