// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/fat_tree.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Radix;
using testing::SwitchDiameter;
using testing::Switches;

// One GPU and NIC per server.
NetworkSpec Hosts(uint32_t count) { return {.servers = {{.count = count, .gpus = 1}}}; }

std::vector<std::string> Problems(const FatTreeSpec& spec) {
  return testing::Lines(CheckFatTree(spec));
}

class FatTreeRadixTest : public ::testing::TestWithParam<uint32_t> {};

// Al-Fares, Loukissas, Vahdat, SIGCOMM 2008, section 3.1.
TEST_P(FatTreeRadixTest, ThreeTiersHoldACubeOfTheRadixOverFourWithFiveFourthsSquaredSwitches) {
  const uint32_t k = GetParam();
  const FabricGraph graph = MakeFatTree({.network = Hosts(k * k * k / 4), .radix = k});
  EXPECT_EQ(Switches(graph).size(), 5 * k * k / 4);
  EXPECT_EQ(CablesOf(graph, Tier::kNicLeaf), k * k * k / 4);
  EXPECT_EQ(CablesOf(graph, Tier::kLeafSpine), k * k * k / 4);
  EXPECT_EQ(CablesOf(graph, Tier::kSpineCore), k * k * k / 4);
  for (const DeviceId id : Switches(graph)) {
    EXPECT_EQ(Radix(graph, graph.device(id).name), k) << graph.device(id).name;
  }
  EXPECT_EQ(SwitchDiameter(graph), 4u);
  EXPECT_THAT(Problems({.network = Hosts(k * k * k / 4 + 1), .radix = k}),
              ElementsAre("radix: the servers have " + std::to_string(k * k * k / 4 + 1) +
                          " NICs, and the fabric has ports for " + std::to_string(k * k * k / 4) +
                          " (expected fewer servers or a larger fabric)"));
}

TEST_P(FatTreeRadixTest, PathsBetweenPodsAreTheSquareOfHalfTheRadix) {
  const uint32_t k = GetParam();
  const FabricGraph graph = MakeFatTree({.network = Hosts(k * k * k / 4), .radix = k});
  const EcmpRouting routing(graph, 1);
  const auto& gpus = graph.gpus();
  EXPECT_EQ(routing.CountShortestPaths(gpus[0], gpus[1]), 1u) << "one leaf";
  EXPECT_EQ(routing.CountShortestPaths(gpus[0], gpus[k / 2]), k / 2) << "one pod";
  EXPECT_EQ(routing.CountShortestPaths(gpus[0], gpus[k * k / 4]), k * k / 4) << "two pods";
}

INSTANTIATE_TEST_SUITE_P(Radices, FatTreeRadixTest, ::testing::Values(4, 6, 8));

TEST(FatTreeTest, TwoTiersHoldHalfTheSquareOfTheRadix) {
  const FabricGraph graph = MakeFatTree({.network = Hosts(32), .radix = 8, .tiers = 2});
  EXPECT_EQ(Switches(graph).size(), 8 + 4u);
  EXPECT_EQ(CablesOf(graph, Tier::kLeafSpine), 32u);
  EXPECT_EQ(SwitchDiameter(graph), 2u);
  EXPECT_EQ(Radix(graph, "leaf7"), 8u);
  EXPECT_EQ(Radix(graph, "spine3"), 8u);
  EXPECT_EQ(Problems({.network = Hosts(33), .radix = 8, .tiers = 2}).size(), 1u);
}

TEST(FatTreeTest, OversubscriptionTakesUplinksForNics) {
  // 12 ports 3:1: 9 NICs and 3 uplinks; 2 pods of 6 leaves hold 108.
  const FabricGraph graph =
      MakeFatTree({.network = Hosts(108), .radix = 12, .oversubscription = 3});
  EXPECT_EQ(Radix(graph, "pod1/leaf5"), 12u);
  EXPECT_TRUE(graph.FindCable("server8/nic0--pod0/leaf0").has_value());
  EXPECT_TRUE(graph.FindCable("server9/nic0--pod0/leaf1").has_value());
  EXPECT_EQ(CablesOf(graph, Tier::kLeafSpine), 2 * 6 * 3u);
  EXPECT_EQ(CablesOf(graph, Tier::kSpineCore), 2 * 3 * 6u);
}

TEST(FatTreeTest, BundlesTakePortsOfFewerSpinesAndCores) {
  const FabricGraph graph = MakeFatTree(
      {.network = Hosts(16), .radix = 8, .leaf_spine = {.count = 2}, .spine_core = {.count = 4}});
  // A pod: 4 / 2 leaves of 4 NICs and 4 / 2 spines; 4 / 4 core for each of a pod's spines.
  EXPECT_EQ(Switches(graph).size(), 2 * (2 + 2) + 2u);
  EXPECT_TRUE(graph.FindCable("pod1/leaf1--pod1/spine0#2").has_value());
  EXPECT_TRUE(graph.FindCable("pod1/spine1--core1#4").has_value());
  EXPECT_EQ(Radix(graph, "core0"), 8u);
}

TEST(CheckFatTreeTest, EveryParameterHasItsMessage) {
  const NetworkSpec one = Hosts(1);
  EXPECT_THAT(Problems({.network = one}), IsEmpty());
  EXPECT_THAT(Problems({.network = one, .radix = 1}),
              ElementsAre("radix: 1 is out of range (expected 2 to 4096)"));
  EXPECT_THAT(Problems({.network = one, .radix = 4'098}),
              ElementsAre("radix: 4098 is out of range (expected 2 to 4096)"));
  EXPECT_THAT(Problems({.network = one, .radix = 5, .oversubscription = 4}),
              ElementsAre("radix: 5 is odd (expected as many ports up as down)"));
  EXPECT_THAT(Problems({.network = one, .tiers = 4}),
              ElementsAre("tiers: 4 is out of range (expected 2 to 3)"));
  EXPECT_THAT(Problems({.network = one, .oversubscription = 0}),
              ElementsAre("oversubscription: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.network = one, .oversubscription = 2}),
              ElementsAre("oversubscription: a leaf of 64 ports cannot be split 2:1 (expected a "
                          "divisor of the radix, less one)"));
  EXPECT_THAT(Problems({.network = one, .tiers = 2, .pods = 1}),
              ElementsAre("pods: two tiers have no pods (expected tiers: 3, or no pods)"));
  EXPECT_THAT(Problems({.network = one, .pods = 65}),
              ElementsAre("pods: 65 is out of range (expected 1 to 64)"));
  EXPECT_THAT(Problems({.network = one, .leaf_spine = {.count = 3}}),
              ElementsAre("leaf_spine.count: bundles of 3 do not fit 32 uplinks (expected a "
                          "divisor)"));
  EXPECT_THAT(Problems({.network = one, .spine_core = {.count = 3}}),
              ElementsAre("spine_core.count: bundles of 3 do not fit 32 uplinks (expected a "
                          "divisor)"));
  EXPECT_THAT(Problems({.network = one, .leaf_spine = {.rate_bps = 0}}),
              ElementsAre("leaf_spine.rate: 0 bps is out of range (expected 1Mbps to 100Tbps)"));
  EXPECT_THAT(Problems({.network = one, .spine_core = {.delay_ps = -1}}),
              ElementsAre("spine_core.delay: -1 ps is out of range (expected 0s to 1s)"));
  EXPECT_THAT(Problems({.network = one, .radix = 4'096, .pods = 4'096}),
              ElementsAre("radix: the fabric would have 20971520 switches (expected at most "
                          "200000)"));
}

TEST(CheckNetworkTest, EveryCommonParameterHasItsMessage) {
  const auto problems = [](NetworkSpec network) {
    return Problems({.network = std::move(network)});
  };
  EXPECT_THAT(problems({.servers = {}}),
              ElementsAre("servers: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(problems({.servers = {{.count = 0}}}),
              ElementsAre("servers[0].count: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(problems({.servers = {{}, {.gpus = 1'025, .nics = 8}}}),
              ElementsAre("servers[1].gpus: 1025 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(problems({.servers = {{.nics = 0}}}),
              ElementsAre("servers[0].nics: 0 is out of range (expected 1 to 1024)"));
  const std::string rate = " is out of range (expected 1Mbps to 100Tbps)";
  EXPECT_THAT(problems({.servers = {{.nic_rate_bps = 7}}}),
              ElementsAre("servers[0].nic_rate: 7 bps" + rate));
  EXPECT_THAT(problems({.servers = {{.host_rate_bps = 7}}}),
              ElementsAre("servers[0].host_rate: 7 bps" + rate));
  EXPECT_THAT(problems({.servers = {{.nvlink_lane_rate_bps = 7}}}),
              ElementsAre("servers[0].nvlink_rate: 7 bps" + rate));
  const std::string delay = ": 2 s is out of range (expected 0s to 1s)";
  EXPECT_THAT(problems({.nic_delay_ps = 2 * kPsPerSecond}), ElementsAre("nic_delay" + delay));
  EXPECT_THAT(problems({.switch_latency_ps = 2 * kPsPerSecond}),
              ElementsAre("switch_latency" + delay));
  EXPECT_THAT(problems({.delay_spread_ps = 2 * kPsPerSecond}), ElementsAre("delay_spread" + delay));
  EXPECT_THAT(problems({.servers = {{.count = 8'192}, {}}}),
              ElementsAre("servers: there are 65544 GPUs (expected at most 65536)"));
}

}  // namespace
}  // namespace railyard
