// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/rail_optimized.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"

namespace railyard {
namespace {

using testing::CablesByTier;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Radix;

std::vector<std::string> Problems(const RailOptimizedSpec& spec) {
  return testing::Lines(CheckRailOptimized(spec));
}

struct Shape {
  uint32_t servers;
  uint32_t gpus_per_server;
  uint32_t servers_per_leaf;
  uint32_t spines;
  uint32_t links;
};

class RailOptimizedShapeTest : public ::testing::TestWithParam<Shape> {};

TEST_P(RailOptimizedShapeTest, DevicesAndCablesOfEveryTierFollowTheClosedForm) {
  const auto [servers, gpus, servers_per_leaf, spines, links] = GetParam();
  RailOptimizedSpec spec;
  spec.servers = servers;
  spec.gpus_per_server = gpus;
  spec.servers_per_leaf = servers_per_leaf;
  spec.spines = spines;
  spec.links_per_leaf_and_spine = links;
  ASSERT_THAT(Problems(spec), IsEmpty());
  const FabricGraph graph = MakeRailOptimized(spec);
  const uint32_t groups = (servers + servers_per_leaf - 1) / servers_per_leaf;
  EXPECT_EQ(graph.device_count(), servers * (2 * gpus + 4) + groups * gpus + spines);
  EXPECT_EQ(graph.gpus().size(), servers * gpus);
  EXPECT_EQ(graph.server_count(), servers);
  EXPECT_THAT(CablesByTier(graph), ElementsAre(servers * gpus * 4, servers * gpus, servers * gpus,
                                               groups * gpus * spines * links, 0, 0, 0, 0));
  EXPECT_EQ(graph.link_count(), 2 * graph.cables().size());
}

INSTANTIATE_TEST_SUITE_P(Shapes, RailOptimizedShapeTest,
                         ::testing::Values(Shape{1, 1, 1, 1, 1}, Shape{4, 8, 4, 4, 1},
                                           Shape{5, 8, 2, 3, 2}, Shape{16, 4, 16, 1, 8},
                                           Shape{3, 72, 1, 2, 1}));

// As on EC2's p5: four NICs of 100 Gb/s for each GPU.
TEST(RailOptimizedTest, AllPortsOfANicAreOnTheLeafOfItsRail) {
  RailOptimizedSpec spec;
  spec.mixed_servers = {{.count = 2, .nic_rate_bps = 100'000'000'000, .nic_ports = 4}};
  ASSERT_THAT(Problems(spec), IsEmpty());
  const FabricGraph graph = MakeRailOptimized(spec);
  const std::vector<LinkId> ports = graph.WiresOfNic(graph.FindDevice("server1/nic3").value());
  ASSERT_EQ(ports.size(), 4u);
  for (const LinkId port : ports) {
    EXPECT_EQ(graph.device(graph.link_target(port)).name, "leaf3");
    EXPECT_EQ(graph.link(port).rate_bps, 100'000'000'000u);
  }
  // 2 servers x 4 ports x 100 Gb/s are as much as two cables of 400.
  EXPECT_EQ(NonBlockingSpines(spec), 2u);
  spec.mixed_servers[0].nic_ports = 17;
  EXPECT_THAT(Problems(spec),
              ElementsAre("mixed_servers[0].nic_ports: 17 is out of range (expected 1 to 16)"));
}

TEST(RailOptimizedTest, DefaultsAreADgxH100) {
  const FabricGraph graph = MakeRailOptimized({.servers = 2});
  const auto link = [&](const char* cable) -> const LinkProperties& {
    return graph.link(graph.cables()[graph.FindCable(cable).value()].forward);
  };
  // 18 NVLinks of 25 GB/s: 450 GB/s each way, spread 5/4/4/5.
  uint32_t lanes = 0;
  uint64_t nvlink_bps = 0;
  for (int plane = 0; plane < 4; ++plane) {
    const auto& nvlink = link(("server0/gpu0--server0/nvswitch" + std::to_string(plane)).c_str());
    EXPECT_EQ(nvlink.lanes, (std::array{5u, 4u, 4u, 5u})[static_cast<size_t>(plane)]);
    lanes += nvlink.lanes;
    nvlink_bps += nvlink.rate_bps;
  }
  EXPECT_EQ(lanes, 18u);
  EXPECT_EQ(nvlink_bps, 450ULL * 8'000'000'000);
  EXPECT_EQ(link("server1/gpu7--server1/nic7").rate_bps, 55ULL * 8'000'000'000);
  EXPECT_EQ(link("server1/nic3--leaf3").rate_bps, 400'000'000'000u);
  EXPECT_EQ(link("leaf3--spine0").rate_bps, 400'000'000'000u);
  EXPECT_EQ(graph.device(graph.FindDevice("leaf0").value()).forwarding_latency_ps, 300 * kPsPerNs);
}

TEST(RailOptimizedTest, AnNvlinkCrossingTakesHalfAMicrosecondWithoutSerialisation) {
  const FabricGraph graph = MakeRailOptimized({.servers = 1});
  const auto nvswitch = graph.FindDevice("server0/nvswitch0").value();
  const auto up = graph.FindLink(graph.gpus()[0], nvswitch).value();
  const auto down = graph.FindLink(nvswitch, graph.gpus()[7]).value();
  EXPECT_EQ(graph.link(up).propagation_ps + graph.device(nvswitch).forwarding_latency_ps +
                graph.link(down).propagation_ps,
            500 * kPsPerNs);
}

TEST(RailOptimizedTest, TheNicsOfARailShareALeafAndTheGpusOfAServerAllNvSwitches) {
  const FabricGraph graph = MakeRailOptimized({.servers = 4});
  for (uint32_t gpu = 0; gpu < 32; ++gpu) {
    const Device& device = graph.device(graph.gpus()[gpu]);
    EXPECT_EQ(device.server, gpu / 8);
    EXPECT_EQ(device.local_index, static_cast<int32_t>(gpu % 8));
    const DeviceId nic = graph.NicOfGpu(graph.gpus()[gpu]).value();
    EXPECT_EQ(graph.device(nic).name,
              "server" + std::to_string(gpu / 8) + "/nic" + std::to_string(gpu % 8));
    const DeviceId leaf = graph.FindDevice("leaf" + std::to_string(gpu % 8)).value();
    EXPECT_TRUE(graph.FindLink(nic, leaf).has_value());
    const bool same_server = gpu / 8 == 0;
    if (gpu != 0) {
      EXPECT_EQ(graph.SharedNvSwitches(graph.gpus()[0], graph.gpus()[gpu]).size(),
                same_server ? 4u : 0u);
    }
  }
}

TEST(RailOptimizedTest, SwitchRadixIsDownlinksPlusUplinks) {
  const FabricGraph graph = MakeRailOptimized(
      {.servers = 6, .servers_per_leaf = 4, .spines = 2, .links_per_leaf_and_spine = 3});
  EXPECT_EQ(Radix(graph, "group0/leaf0"), 4 + 2 * 3u);
  EXPECT_EQ(Radix(graph, "group1/leaf7"), 2 + 2 * 3u);
  EXPECT_EQ(Radix(graph, "spine1"), 2 * 8 * 3u);
  EXPECT_EQ(Radix(graph, "server5/nvswitch3"), 8u);
  EXPECT_EQ(Radix(graph, "server5/nic0"), 2u);
  EXPECT_EQ(Radix(graph, "server5/gpu0"), 5u);
  EXPECT_TRUE(graph.FindCable("server4/nic2--group1/leaf2").has_value());
  EXPECT_TRUE(graph.FindCable("group1/leaf2--spine0#3").has_value());
}

TEST(RailOptimizedTest, SpinesAreByDefaultAsManyAsMakeALeafNonBlocking) {
  // Four NICs of 400 Gb/s below a leaf.
  EXPECT_EQ(NonBlockingSpines({.servers = 4}), 4u);
  EXPECT_EQ(NonBlockingSpines({.servers = 4, .links_per_leaf_and_spine = 4}), 1u);
  EXPECT_EQ(NonBlockingSpines({.servers = 4, .links_per_leaf_and_spine = 3}), 2u);
  EXPECT_EQ(NonBlockingSpines({.servers = 4, .leaf_spine_rate_bps = 800'000'000'000}), 2u);
  EXPECT_EQ(NonBlockingSpines({.servers = 64, .servers_per_leaf = 32}), 32u);
  EXPECT_EQ(NonBlockingSpines({.servers = 1, .leaf_spine_rate_bps = 1'600'000'000'000}), 1u);
  EXPECT_EQ(Radix(MakeRailOptimized({.servers = 4}), "leaf0"), 8u);
}

TEST(RailOptimizedTest, DelaySpreadLengthensEveryCableByItsOwnFixedDraw) {
  const int64_t spread_ps = 40 * kPsPerNs;
  const FabricGraph equal = MakeRailOptimized({.servers = 16});
  const FabricGraph spread = MakeRailOptimized({.servers = 16, .delay_spread_ps = spread_ps});
  const FabricGraph again = MakeRailOptimized({.servers = 16, .delay_spread_ps = spread_ps});
  std::array<double, kTierCount> sum_ps = {};
  std::set<int64_t> draws;
  for (const Cable& cable : spread.cables()) {
    const LinkProperties& link = spread.link(cable.forward);
    const int64_t draw_ps = link.propagation_ps - equal.link(cable.forward).propagation_ps;
    EXPECT_GE(draw_ps, 0);
    EXPECT_LT(draw_ps, spread_ps);
    EXPECT_EQ(spread.link(cable.backward).propagation_ps, link.propagation_ps) << cable.name;
    EXPECT_EQ(again.link(cable.forward).propagation_ps, link.propagation_ps) << cable.name;
    sum_ps[static_cast<size_t>(link.tier)] += static_cast<double>(draw_ps);
    draws.insert(draw_ps);
  }
  EXPECT_GT(draws.size(), spread.cables().size() * 9 / 10);
  const auto cables = CablesByTier(spread);
  for (const Tier tier : {Tier::kNvlink, Tier::kHost, Tier::kNicLeaf, Tier::kLeafSpine}) {
    // The mean of n draws from [0, s) deviates by s / sqrt(12 n); 128 cables or more per tier.
    const auto i = static_cast<size_t>(tier);
    EXPECT_GE(cables[i], 128u);
    EXPECT_NEAR(sum_ps[i] / cables[i], static_cast<double>(spread_ps) / 2,
                5 * static_cast<double>(spread_ps) / 39)
        << TierName(tier);
  }
}

TEST(RailOptimizedTest, WithoutSpinesRailsAreSwitchesOfTheirOwn) {
  const FabricGraph graph = MakeRailOptimized({.servers = 4, .spines = 0});
  EXPECT_THAT(CablesByTier(graph), ElementsAre(4 * 8 * 4, 32, 32, 0, 0, 0, 0, 0));
  EXPECT_EQ(Radix(graph, "leaf7"), 4u);
}

TEST(RailOptimizedTest, CoresJoinTheSpinesOfPods) {
  const FabricGraph graph = MakeRailOptimized({.servers = 8,
                                               .servers_per_leaf = 2,
                                               .spines = 2,
                                               .cores = 3,
                                               .groups_per_pod = 2,
                                               .spine_core = {.count = 4}});
  // 4 groups of 8 leaves in 2 pods of 2 spines.
  EXPECT_THAT(CablesByTier(graph),
              ElementsAre(8 * 8 * 4, 64, 64, 4 * 8 * 2, 2 * 2 * 3 * 4, 0, 0, 0));
  EXPECT_EQ(Radix(graph, "pod1/spine1"), 16 + 3 * 4u);
  EXPECT_EQ(Radix(graph, "core2"), 4 * 4u);
  EXPECT_TRUE(graph.FindCable("group3/leaf0--pod1/spine0").has_value());
  EXPECT_FALSE(graph.FindCable("group1/leaf0--pod1/spine0").has_value());
}

TEST(RailOptimizedTest, ServersOfTwoKindsShareTheRailsTheyHave) {
  const FabricGraph graph = MakeRailOptimized(
      {.spines = 1, .mixed_servers = {{.count = 2}, {.count = 3, .gpus = 4, .nics = 2}}});
  EXPECT_EQ(graph.gpus().size(), 2 * 8 + 3 * 4u);
  EXPECT_EQ(Radix(graph, "leaf0"), 5 + 1u);
  EXPECT_EQ(Radix(graph, "leaf1"), 5 + 1u);
  EXPECT_EQ(Radix(graph, "leaf2"), 2 + 1u);
  // GPU 3 of a server with two NICs shares the second with GPU 1.
  const DeviceId gpu = graph.FindDevice("server4/gpu3").value();
  EXPECT_EQ(graph.device(graph.NicOfGpu(gpu).value()).name, "server4/nic1");
}

TEST(CheckRailOptimizedTest, MixedServersHaveTheirOwnMessages) {
  EXPECT_THAT(
      Problems({.mixed_servers = {{.count = 2}, {.gpus = 0, .nics = 1}, {.nic_rate_bps = 1}}}),
      ElementsAre("mixed_servers[1].gpus: 0 is out of range (expected 1 to 1024)",
                  "mixed_servers[2].nic_rate: 1 bps is out of range (expected 1Mbps to 100Tbps)"));
}

TEST(RailOptimizedTest, EightThousandGpusHaveTheirCables) {
  const FabricGraph graph = MakeRailOptimized({.servers = 1'024, .servers_per_leaf = 32});
  EXPECT_THAT(CablesByTier(graph), ElementsAre(32'768, 8'192, 8'192, 32 * 8 * 32, 0, 0, 0, 0));
}

TEST(CheckRailOptimizedTest, EveryParameterHasItsMessage) {
  EXPECT_THAT(Problems({.servers = 0}),
              ElementsAre("servers: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.servers = 65'537}),
              ElementsAre("servers: 65537 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.gpus_per_server = 0}),
              ElementsAre("gpus_per_server: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.gpus_per_server = 1'025}),
              ElementsAre("gpus_per_server: 1025 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.servers = 4, .servers_per_leaf = 0}),
              ElementsAre("servers_per_leaf: 0 is out of range (expected 1 to 4)"));
  EXPECT_THAT(Problems({.servers = 4, .servers_per_leaf = 5}),
              ElementsAre("servers_per_leaf: 5 is out of range (expected 1 to 4)"));
  EXPECT_THAT(Problems({.spines = 65'537}),
              ElementsAre("spines: 65537 is out of range (expected 0 to 65536)"));
  EXPECT_THAT(Problems({.spines = 0, .cores = 1}),
              ElementsAre("spines: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.cores = 65'537}),
              ElementsAre("cores: 65537 is out of range (expected 0 to 65536)"));
  EXPECT_THAT(Problems({.cores = 1, .groups_per_pod = 0}),
              ElementsAre("groups_per_pod: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.spine_core = {.count = 0}}),
              ElementsAre("spine_core.count: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.links_per_leaf_and_spine = 0}),
              ElementsAre("links_per_leaf_and_spine: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.links_per_leaf_and_spine = 1'025}),
              ElementsAre("links_per_leaf_and_spine: 1025 is out of range (expected 1 to 1024)"));
  const std::string rate = " is out of range (expected 1Mbps to 100Tbps)";
  EXPECT_THAT(Problems({.host_rate_bps = 0}), ElementsAre("host_rate: 0 bps" + rate));
  EXPECT_THAT(Problems({.nic_rate_bps = 999'999}), ElementsAre("nic_rate: 999999 bps" + rate));
  EXPECT_THAT(Problems({.leaf_spine_rate_bps = 100'000'000'000'001}),
              ElementsAre("leaf_spine_rate: 100000000000001 bps" + rate));
  const std::string delay = " is out of range (expected 0s to 1s)";
  EXPECT_THAT(Problems({.nic_leaf_delay_ps = -1}), ElementsAre("nic_leaf_delay: -1 ps" + delay));
  EXPECT_THAT(Problems({.leaf_spine_delay_ps = 2 * kPsPerSecond}),
              ElementsAre("leaf_spine_delay: 2 s" + delay));
  EXPECT_THAT(Problems({.switch_latency_ps = 5 * kPsPerSecond}),
              ElementsAre("switch_latency: 5 s" + delay));
  EXPECT_THAT(Problems({.delay_spread_ps = 90 * kPsPerSecond}),
              ElementsAre("delay_spread: 90 s" + delay));
}

TEST(CheckRailOptimizedTest, AllMistakesAreReportedAtOnce) {
  EXPECT_THAT(Problems({.servers = 0, .gpus_per_server = 2'000, .nic_rate_bps = 0}).size(), 3u);
}

TEST(CheckRailOptimizedTest, TotalsAreBounded) {
  EXPECT_THAT(Problems({.servers = 8'192}), IsEmpty()) << "65,536 GPUs on leaves of 8,192";
  EXPECT_THAT(Problems({.servers = 8'193}),
              ElementsAre("servers: 8193 servers of 8 GPUs are 65544 GPUs (expected at most "
                          "65536)"));
  // 4 x 8 x (4 + 2) cables in servers, 8 leaves x 65,536 spines x 4 links.
  EXPECT_THAT(Problems({.servers = 4, .spines = 65'536, .links_per_leaf_and_spine = 4}),
              ElementsAre("spines: the fabric would have 2097344 cables (expected at most 2000000; "
                          "fewer spines or links_per_leaf_and_spine)"));
}

TEST(CheckRailOptimizedTest, TheMostUnequalRatesDoNotOverflow) {
  EXPECT_THAT(Problems({.servers = 8'192,
                        .nic_rate_bps = kMaxLinkRateBps,
                        .leaf_spine_rate_bps = kMinLinkRateBps})
                  .size(),
              1u);
}

}  // namespace
}  // namespace railyard
