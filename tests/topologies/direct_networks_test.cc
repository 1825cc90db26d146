// SPDX-License-Identifier: GPL-2.0-only
// Networks whose switches are cabled to each other: counts, diameters and path counts against the
// papers' closed forms.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "topologies/generators/dragonfly.h"
#include "topologies/generators/hyperx.h"
#include "topologies/generators/jellyfish.h"
#include "topologies/generators/slim_fly.h"
#include "topologies/generators/torus.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lines;
using testing::Radix;
using testing::SwitchDiameter;
using testing::Switches;

NetworkSpec Hosts(uint32_t count) { return {.servers = {{.count = count, .gpus = 1}}}; }

constexpr const char* kRate = " is out of range (expected 1Mbps to 100Tbps)";

uint32_t SwitchDegree(const FabricGraph& graph, DeviceId id) {
  uint32_t degree = 0;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(id, graph.graph()))) {
    if (graph.graph()[edge].tier != Tier::kNicLeaf) ++degree;
  }
  return degree;
}

struct TorusShape {
  std::vector<uint32_t> dimensions;
  uint32_t cables;
  uint32_t diameter;
};

class TorusShapeTest : public ::testing::TestWithParam<TorusShape> {};

TEST_P(TorusShapeTest, HasADimensionsCablesPerRouterAndTheSumOfHalvesAsDiameter) {
  const auto& [dimensions, cables, diameter] = GetParam();
  const FabricGraph graph = MakeTorus({.network = Hosts(1), .dimensions = dimensions});
  EXPECT_EQ(CablesOf(graph, Tier::kDirect), cables);
  EXPECT_EQ(SwitchDiameter(graph), diameter);
}

// n-dimensional with k_i > 2: n cables per router; a dimension of 2 has half as many.
INSTANTIATE_TEST_SUITE_P(Shapes, TorusShapeTest,
                         ::testing::Values(TorusShape{{8}, 8, 4}, TorusShape{{4, 4}, 32, 4},
                                           TorusShape{{5, 3}, 30, 3}, TorusShape{{4, 4, 4}, 192, 6},
                                           TorusShape{{4, 2}, 8 + 4, 3},
                                           TorusShape{{3, 3, 3, 3}, 324, 4}));

TEST(TorusTest, RoutersHaveTwoNeighboursInEachDimension) {
  const FabricGraph graph = MakeTorus({.network = Hosts(64), .dimensions = {4, 4, 4}});
  for (const DeviceId id : Switches(graph)) EXPECT_EQ(SwitchDegree(graph, id), 6u);
  EXPECT_TRUE(graph.FindCable("router3.0.2--router0.0.2").has_value());
  EXPECT_THAT(graph.device(graph.FindDevice("router3.0.2").value()).coordinates,
              ElementsAre(3, 0, 2));
}

TEST(TorusTest, EveryParameterHasItsMessage) {
  const auto problems = [](const TorusSpec& spec) { return Lines(CheckTorus(spec)); };
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {2, 2}}), IsEmpty());
  EXPECT_THAT(problems({.network = Hosts(4)}),
              ElementsAre("dimensions: 0 dimensions (expected 1 to 4)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {2, 2, 2, 2, 2}}),
              ElementsAre("dimensions: 5 dimensions (expected 1 to 4)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {4, 1}}),
              ElementsAre("dimensions[1]: 1 is out of range (expected 2 to 65535)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {4}, .nics_per_router = 0}),
              ElementsAre("nics_per_router: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {4}, .direct = {.rate_bps = 1}}),
              ElementsAre(std::string("direct.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.network = Hosts(5), .dimensions = {2, 2}}),
              ElementsAre("dimensions: the servers have 5 NICs, and the fabric has ports for 4 "
                          "(expected fewer servers or a larger fabric)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {1'000, 1'000}}),
              ElementsAre("dimensions: the fabric would have 1000000 switches (expected at most "
                          "200000)"));
}

// Ahn et al., SC 2009: N switches of degree sum(S_i - 1), diameter L.
TEST(HyperXTest, DiameterIsTheNumberOfDimensions) {
  const FabricGraph graph =
      MakeHyperX({.network = Hosts(64), .dimensions = {4, 3, 2}, .nics_per_switch = 3});
  EXPECT_EQ(Switches(graph).size(), 24u);
  for (const DeviceId id : Switches(graph)) EXPECT_EQ(SwitchDegree(graph, id), 3 + 2 + 1u);
  EXPECT_EQ(CablesOf(graph, Tier::kLocal), 24 * 3 / 2u);
  EXPECT_EQ(CablesOf(graph, Tier::kGlobal), 24 * (2 + 1) / 2u);
  EXPECT_EQ(SwitchDiameter(graph), 3u);
}

TEST(HyperXTest, ShortestPathsAreTheOrdersOfTheDimensionsAndOneIsInOrder) {
  FabricGraph graph =
      MakeHyperX({.network = Hosts(27), .dimensions = {3, 3, 3}, .nics_per_switch = 1});
  EXPECT_EQ(EcmpRouting(graph, 1).CountShortestPaths(graph.gpus()[0], graph.gpus()[26]), 1u);
  graph.routing = RoutingPolicy::kShortest;
  EXPECT_EQ(EcmpRouting(graph, 1).CountShortestPaths(graph.gpus()[0], graph.gpus()[26]),
            3 * 2 * 1u);
}

TEST(HyperXTest, EveryParameterHasItsMessage) {
  const auto problems = [](const HyperXSpec& spec) { return Lines(CheckHyperX(spec)); };
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {2, 2}}), IsEmpty());
  EXPECT_THAT(problems({.network = Hosts(4)}),
              ElementsAre("dimensions: 0 dimensions (expected 1 to 4)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {65'536}}),
              ElementsAre("dimensions[0]: 65536 is out of range (expected 2 to 65535)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {4}, .nics_per_switch = 0}),
              ElementsAre("nics_per_switch: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {4}, .local = {.rate_bps = 1}}),
              ElementsAre(std::string("local.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {4}, .global = {.rate_bps = 1}}),
              ElementsAre(std::string("global.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.network = Hosts(5), .dimensions = {2, 2}, .nics_per_switch = 1}),
              ElementsAre("dimensions: the servers have 5 NICs, and the fabric has ports for 4 "
                          "(expected fewer servers or a larger fabric)"));
  // 3,000 x 2,999 / 2 cables, and 4 x (4 + 2) of the servers.
  EXPECT_THAT(problems({.network = Hosts(4), .dimensions = {3'000}}),
              ElementsAre("dimensions: the fabric would have 4498524 cables (expected at most "
                          "2000000)"));
}

// Kim et al., ISCA 2008: g = ah + 1 groups of a routers, N = ap(ah + 1), any two routers at most
// local, global, local apart.
TEST(DragonflyTest, TheLargestHasOneCableBetweenEveryTwoGroupsAndDiameterThree) {
  const uint32_t a = 4;
  const uint32_t p = 2;
  const uint32_t h = 2;
  const uint32_t groups = a * h + 1;
  const FabricGraph graph = MakeDragonfly({.network = Hosts(a * p * groups),
                                           .groups = groups,
                                           .routers_per_group = a,
                                           .nics_per_router = p,
                                           .global_cables_per_router = h});
  EXPECT_EQ(Switches(graph).size(), a * groups);
  EXPECT_EQ(CablesOf(graph, Tier::kLocal), groups * a * (a - 1) / 2);
  EXPECT_EQ(CablesOf(graph, Tier::kGlobal), groups * (groups - 1) / 2);
  for (const DeviceId id : Switches(graph)) {
    EXPECT_EQ(boost::out_degree(id, graph.graph()), p + (a - 1) + h) << "radix k = p + a + h - 1";
  }
  EXPECT_EQ(SwitchDiameter(graph), 3u);
}

TEST(DragonflyTest, FewerGroupsShareTheGlobalCablesEvenly) {
  const FabricGraph graph = MakeDragonfly({.network = Hosts(24),
                                           .groups = 3,
                                           .routers_per_group = 4,
                                           .nics_per_router = 2,
                                           .global_cables_per_router = 2});
  // 8 ends of a group over 2 others.
  EXPECT_EQ(CablesOf(graph, Tier::kGlobal), 3 * 4u);
  for (const DeviceId id : Switches(graph)) EXPECT_EQ(SwitchDegree(graph, id), 3 + 2u);
}

// Shpiner et al., HiPINEB 2017: bipartite groups; leaf, spine, spine, leaf.
TEST(DragonflyTest, DragonflyPlusHasGroupsOfLeavesAndSpines) {
  const FabricGraph graph = MakeDragonfly({.network = Hosts(5 * 4 * 4),
                                           .groups = 5,
                                           .routers_per_group = 4,
                                           .spines_per_group = 2,
                                           .nics_per_router = 4,
                                           .global_cables_per_router = 2});
  EXPECT_EQ(Switches(graph).size(), 5 * (4 + 2u));
  EXPECT_EQ(CablesOf(graph, Tier::kLocal), 5 * 4 * 2u);
  EXPECT_EQ(CablesOf(graph, Tier::kGlobal), 5 * 4 / 2u);
  EXPECT_EQ(Radix(graph, "group4/leaf3"), 4 + 2u);
  EXPECT_EQ(Radix(graph, "group4/spine1"), 4 + 2u);
  // Two spines of one group that no group's cables join meet at a leaf.
  EXPECT_LE(SwitchDiameter(graph), 5u);
}

TEST(DragonflyTest, EveryParameterHasItsMessage) {
  const auto problems = [](DragonflySpec spec) {
    spec.network = Hosts(4);
    return Lines(CheckDragonfly(spec));
  };
  EXPECT_THAT(problems({}), IsEmpty());
  EXPECT_THAT(problems({.groups = 0}),
              ElementsAre("groups: 0 is out of range (expected 1 to 200000)"));
  EXPECT_THAT(problems({.groups = 10}),
              ElementsAre("groups: 10 groups, but a group's 8 global cables reach 8 others "
                          "(expected at most 9 groups)"));
  // 6 others need 6, 12, ... cables of 4 routers: 3 of each.
  EXPECT_THAT(problems({.groups = 7}),
              ElementsAre("global_cables_per_router: a group's 8 global cables cannot be dealt "
                          "evenly over 6 others (expected a multiple of 6 cables: 4 switches with "
                          "3 each)"));
  EXPECT_THAT(problems({.groups = 7, .global_cables_per_router = 3}), IsEmpty());
  EXPECT_THAT(problems({.routers_per_group = 0}),
              ElementsAre("routers_per_group: 0 is out of range (expected 1 to 4096)"));
  EXPECT_THAT(problems({.spines_per_group = 4'097}),
              ElementsAre("spines_per_group: 4097 is out of range (expected 0 to 4096)"));
  EXPECT_THAT(problems({.nics_per_router = 0}),
              ElementsAre("nics_per_router: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(problems({.global_cables_per_router = 0}),
              ElementsAre("global_cables_per_router: 0 is out of range (expected 1 to 4096)"));
  EXPECT_THAT(problems({.local = {.rate_bps = 1}}),
              ElementsAre(std::string("local.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.global = {.rate_bps = 1}}),
              ElementsAre(std::string("global.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.groups = 1, .routers_per_group = 1}),
              ElementsAre("groups: the servers have 4 NICs, and the fabric has ports for 2 "
                          "(expected fewer servers or a larger fabric)"));
  EXPECT_THAT(problems({.groups = 4'097, .routers_per_group = 2'048}),
              ElementsAre("groups: the fabric would have 8390656 switches (expected at most "
                          "200000)"));
}

// Besta, Hoefler, SC 2014: 2 q² routers of degree (3q - delta) / 2, diameter 2. q = 5 is the
// Hoffman-Singleton graph: 50 routers of degree 7, the Moore bound.
class SlimFlyTest : public ::testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(SlimFlyTest, AnyTwoOfTwiceTheSquareOfQRoutersAreTwoCablesApart) {
  const auto [q, degree] = GetParam();
  const FabricGraph graph = MakeSlimFly({.network = Hosts(8), .q = q});
  EXPECT_EQ(Switches(graph).size(), 2 * q * q);
  for (const DeviceId id : Switches(graph)) EXPECT_EQ(SwitchDegree(graph, id), degree);
  EXPECT_EQ(CablesOf(graph, Tier::kGlobal), q * q * q);
  EXPECT_EQ(SwitchDiameter(graph), 2u);
}

INSTANTIATE_TEST_SUITE_P(Primes, SlimFlyTest,
                         ::testing::Values(std::pair{3u, 5u}, std::pair{5u, 7u}, std::pair{7u, 11u},
                                           std::pair{11u, 17u}, std::pair{13u, 19u}));

TEST(SlimFlyCheckTest, EveryParameterHasItsMessage) {
  const auto problems = [](SlimFlySpec spec) {
    if (spec.network.servers.size() == 1) spec.network = Hosts(4);
    return Lines(CheckSlimFly(spec));
  };
  EXPECT_THAT(problems({}), IsEmpty());
  for (const uint32_t q : {0u, 2u, 9u, 211u}) {
    EXPECT_THAT(problems({.q = q}),
                ElementsAre("q: " + std::to_string(q) +
                            " is not an odd prime up to 199 (expected e.g. 5, 7, 11, 13, 17)"));
  }
  EXPECT_THAT(problems({.nics_per_router = 0}),
              ElementsAre("nics_per_router: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(problems({.local = {.rate_bps = 1}}),
              ElementsAre(std::string("local.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.global = {.rate_bps = 1}}),
              ElementsAre(std::string("global.rate: 1 bps") + kRate));
  EXPECT_THAT(Lines(CheckSlimFly({.network = Hosts(51), .nics_per_router = 1})),
              ElementsAre("q: the servers have 51 NICs, and the fabric has ports for 50 "
                          "(expected fewer servers or a larger fabric)"));
  EXPECT_THAT(problems({.q = 151}).size(), 1u);
}

TEST(JellyfishTest, EverySwitchHasItsDegreeAndNoNeighbourTwice) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const FabricGraph graph =
        MakeJellyfish({.network = Hosts(64), .switches = 20, .degree = 7, .seed = seed});
    std::set<std::pair<DeviceId, DeviceId>> pairs;
    for (const Cable& cable : graph.cables()) {
      if (graph.link(cable.forward).tier != Tier::kGlobal) continue;
      EXPECT_TRUE(
          pairs.emplace(graph.link_source(cable.forward), graph.link_target(cable.forward)).second);
    }
    EXPECT_EQ(pairs.size(), 20 * 7 / 2u);
    for (const DeviceId id : Switches(graph)) EXPECT_EQ(SwitchDegree(graph, id), 7u);
    EXPECT_LT(SwitchDiameter(graph), 20u) << "connected";
  }
}

TEST(JellyfishTest, TheSeedDecidesTheGraph) {
  const auto cables = [](uint64_t seed) {
    const FabricGraph graph = MakeJellyfish({.network = Hosts(64), .seed = seed});
    std::set<std::string> names;
    for (const Cable& cable : graph.cables()) names.insert(cable.name);
    return names;
  };
  EXPECT_EQ(cables(7), cables(7));
  EXPECT_NE(cables(7), cables(8));
}

// Bollobás, Fernandez de la Vega 1982: the diameter of a random r-regular graph of n vertices is at
// most about log_{r-1}(2 n log n) + 1, here 3.4.
TEST(JellyfishTest, ALargeOneHasASmallDiameter) {
  const FabricGraph graph = MakeJellyfish({.network = Hosts(8), .switches = 200, .degree = 16});
  EXPECT_LE(SwitchDiameter(graph), 4u);
}

TEST(JellyfishTest, EveryParameterHasItsMessage) {
  const auto problems = [](JellyfishSpec spec) {
    spec.network = Hosts(17);
    return Lines(CheckJellyfish(spec));
  };
  EXPECT_THAT(problems({}), IsEmpty());
  EXPECT_THAT(problems({.switches = 5}),
              ElementsAre("switches: 5 is out of range (expected 6 to 65536)"));
  EXPECT_THAT(problems({.degree = 2}),
              ElementsAre("degree: 2 is out of range (expected 3 to 1024)"));
  EXPECT_THAT(problems({.degree = 9}),
              ElementsAre("degree: 9 of 16 switches are no sparse graph (expected at most 8)"));
  EXPECT_THAT(problems({.switches = 15, .degree = 5}),
              ElementsAre("degree: 15 switches of odd degree 5 cannot be paired (expected an even "
                          "product)"));
  EXPECT_THAT(problems({.nics_per_switch = 0}),
              ElementsAre("nics_per_switch: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(problems({.nics_per_switch = 1}),
              ElementsAre("switches: the servers have 17 NICs, and the fabric has ports for 16 "
                          "(expected fewer servers or a larger fabric)"));
  EXPECT_THAT(problems({.global = {.rate_bps = 1}}),
              ElementsAre(std::string("global.rate: 1 bps") + kRate));
  EXPECT_THAT(problems({.switches = 65'536, .degree = 64}),
              ElementsAre("switches: the fabric would have 2097254 cables (expected at most "
                          "2000000)"))
      << "65,536 x 32, and 17 x (4 + 2)";
}

}  // namespace
}  // namespace railyard
