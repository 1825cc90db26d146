// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/leaf_spine.h"

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
using testing::Switches;

std::vector<std::string> Problems(const LeafSpineSpec& spec) {
  return testing::Lines(CheckLeafSpine(spec));
}

TEST(LeafSpineTest, NicsFillTheLeavesInOrder) {
  const FabricGraph graph =
      MakeLeafSpine({.network = {.servers = {{.count = 5}}}, .nics_per_leaf = 16, .spines = 3});
  EXPECT_EQ(Switches(graph).size(), 3 + 3u);
  EXPECT_EQ(Radix(graph, "leaf0"), 16 + 3u);
  EXPECT_EQ(Radix(graph, "leaf2"), 8 + 3u);
  EXPECT_TRUE(graph.FindCable("server1/nic7--leaf0").has_value());
  EXPECT_TRUE(graph.FindCable("server2/nic0--leaf1").has_value());
  EXPECT_EQ(EcmpRouting(graph, 1).CountShortestPaths(graph.gpus()[0], graph.gpus()[16]), 3u);
}

TEST(LeafSpineTest, SpinesFollowFromOversubscriptionRatesAndBundles) {
  const auto spines = [](LeafSpineSpec spec) {
    spec.network.servers = {{.count = 4}};
    const FabricGraph graph = MakeLeafSpine(spec);
    return CablesOf(graph, Tier::kLeafSpine) / spec.leaf_spine.count / (32 / spec.nics_per_leaf);
  };
  EXPECT_EQ(spines({.nics_per_leaf = 16}), 16u);
  EXPECT_EQ(spines({.nics_per_leaf = 16, .oversubscription = 4}), 4u);
  EXPECT_EQ(spines({.nics_per_leaf = 16, .oversubscription = 3}), 6u);
  // 2^46 bps x 2^8 cables x 2^10 wraps to 0 in 64 bits.
  EXPECT_EQ(spines({.nics_per_leaf = 16,
                    .oversubscription = 1'024,
                    .leaf_spine = {.rate_bps = uint64_t{1} << 46, .count = 256}}),
            1u);
  EXPECT_EQ(spines({.nics_per_leaf = 16, .leaf_spine = {.rate_bps = 800'000'000'000}}), 8u);
  EXPECT_EQ(spines({.nics_per_leaf = 16, .leaf_spine = {.count = 8}}), 2u);
}

TEST(LeafSpineTest, PlanesMeetOnlyInsideServers) {
  const FabricGraph graph =
      MakeLeafSpine({.network = {.servers = {{.count = 4}}}, .planes = 8, .nics_per_leaf = 2});
  EXPECT_EQ(Switches(graph).size(), 8 * (2 + 2u));
  const EcmpRouting routing(graph, 1);
  const auto nic = [&](const char* name) { return graph.FindDevice(name).value(); };
  EXPECT_EQ(routing.CountShortestPaths(nic("server0/nic3"), nic("server3/nic3")), 2u);
  EXPECT_EQ(routing.CountShortestPaths(nic("server0/nic3"), nic("server3/nic4")), 0u);
  EXPECT_TRUE(graph.FindCable("server3/nic4--plane4/leaf1").has_value());
}

// Zhao et al., ISCA 2025, section 5.1: eight planes of two tiers of 64-port switches connect 16,384
// GPUs. A plane is a two-tier fat-tree: 64 leaves of 32 NICs, 32 spines.
TEST(LeafSpineTest, EightPlanesOf64PortSwitchesConnect16384Gpus) {
  const FabricGraph graph =
      MakeLeafSpine({.network = {.servers = {{.count = 2'048}}}, .planes = 8, .nics_per_leaf = 32});
  EXPECT_EQ(graph.gpus().size(), 16'384u);
  EXPECT_EQ(Switches(graph).size(), 8 * (64 + 32u));
  for (const DeviceId id : Switches(graph)) {
    EXPECT_EQ(boost::out_degree(id, graph.graph()), 64u) << graph.device(id).name;
  }
}

TEST(LeafSpineTest, ServersWithFewerNicsAreOnFewerPlanes) {
  const FabricGraph graph =
      MakeLeafSpine({.network = {.servers = {{.count = 2, .gpus = 2}, {.count = 2, .gpus = 4}}},
                     .planes = 4,
                     .nics_per_leaf = 4});
  EXPECT_EQ(Radix(graph, "plane0/leaf0"), 4 + 4u);
  EXPECT_EQ(Radix(graph, "plane3/leaf0"), 2 + 4u);
}

TEST(CheckLeafSpineTest, EveryParameterHasItsMessage) {
  EXPECT_THAT(Problems({}), IsEmpty());
  EXPECT_THAT(Problems({.planes = 0}), ElementsAre("planes: 0 is out of range (expected 1 to 8)"));
  EXPECT_THAT(Problems({.planes = 9}), ElementsAre("planes: 9 is out of range (expected 1 to 8)"));
  EXPECT_THAT(Problems({.network = {.servers = {{.nic_ports = 2}}}}),
              ElementsAre("servers[0].nic_ports: 2 is out of range (expected 1 to 1)"));
  EXPECT_THAT(Problems({.nics_per_leaf = 0}),
              ElementsAre("nics_per_leaf: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.spines = 0}),
              ElementsAre("spines: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(Problems({.oversubscription = 0}),
              ElementsAre("oversubscription: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(Problems({.spines = 2, .oversubscription = 2}),
              ElementsAre("oversubscription: has no effect where spines are given (expected one of "
                          "the two)"));
  EXPECT_THAT(Problems({.leaf_spine = {.count = 1'025}}),
              ElementsAre("leaf_spine.count: 1025 is out of range (expected 1 to 1024)"));
  // 8,000 servers of 8 x 4 + 8 + 8 cables, and 32,000 leaves x 2 spines x 32 cables.
  EXPECT_THAT(Problems({.network = {.servers = {{.count = 8'000}}},
                        .nics_per_leaf = 2,
                        .spines = 2,
                        .leaf_spine = {.count = 32}}),
              ElementsAre("nics_per_leaf: the fabric would have 2432000 cables (expected at most "
                          "2000000)"));
  EXPECT_THAT(Problems({.planes = 8, .spines = 65'536}),
              ElementsAre("nics_per_leaf: the fabric would have 524296 switches (expected at most "
                          "200000)"));
}

}  // namespace
}  // namespace railyard
