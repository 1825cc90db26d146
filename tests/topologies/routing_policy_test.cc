// SPDX-License-Identifier: GPL-2.0-only
// Tests the differences between routing policies: valleys, detours, and the size of their tables.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/dragonfly.h"
#include "topologies/generators/dual_tor.h"
#include "topologies/generators/fat_tree.h"
#include "topologies/generators/hyperx.h"
#include "topologies/generators/leaf_spine.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/generators/torus.h"
#include "topologies/graph/run_lengths.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/preset.h"
#include "topologies/routing/deadlock.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

NetworkSpec Gpus(uint32_t count) {
  NetworkSpec network;
  network.servers = {ServerOfPlatform("single-gpu")};
  network.servers[0].count = count;
  return network;
}

DeviceId Nic(const FabricGraph& fabric, uint32_t gpu) {
  return fabric.NicOfGpu(fabric.gpus()[gpu]).value();
}

// Two NICs on each of three leaves, two spines; leaf0 has lost spine0, leaf1 spine1.
class CutLeafSpineTest : public ::testing::Test {
 protected:
  Path Resolve(RoutingPolicy policy) {
    fabric_.routing = policy;
    EcmpRouting routing(fabric_, 1);
    for (const char* cable : {"leaf0--spine0", "leaf1--spine1"}) {
      const Cable& cut = fabric_.cables()[fabric_.FindCable(cable).value()];
      routing.SetLinkUp(cut.forward, false);
      routing.SetLinkUp(cut.backward, false);
    }
    return routing.Resolve(Nic(fabric_, 0), Nic(fabric_, 2), 3);
  }
  FabricGraph fabric_ = MakeLeafSpine({.network = Gpus(6), .nics_per_leaf = 2, .spines = 2});
};

TEST_F(CutLeafSpineTest, ShortestRoutesGoUpAgainWhereNoSpineJoinsTwoLeaves) {
  // leaf0, spine1, leaf2, spine0, leaf1.
  EXPECT_THAT(Resolve(RoutingPolicy::kShortest), SizeIs(6));
}

TEST_F(CutLeafSpineTest, UpDownRoutesNeverGoUpAgain) {
  EXPECT_THAT(Resolve(RoutingPolicy::kUpDown), IsEmpty());
}

TEST(UpDownTest, RoutesGoRoundACutLinkBelowTheTop) {
  FabricGraph fabric = MakeFatTree({.network = Gpus(16), .radix = 4});
  EcmpRouting routing(fabric, 1);
  EXPECT_EQ(routing.CountShortestPaths(Nic(fabric, 0), Nic(fabric, 15)), 4u);
  const LinkId cut = fabric.cables()[fabric.FindCable("pod3/leaf1--pod3/spine0").value()].backward;
  routing.SetLinkUp(cut, false);
  // Half of the four cores lead to the spine that has lost the leaf.
  EXPECT_EQ(routing.CountShortestPaths(Nic(fabric, 0), Nic(fabric, 15)), 2u);
  for (uint64_t entropy = 0; entropy < 64; ++entropy) {
    const Path path = routing.Resolve(Nic(fabric, 0), Nic(fabric, 15), entropy);
    ASSERT_THAT(path, SizeIs(6));
    for (const LinkId link : path) EXPECT_NE(link, cut);
  }
}

// Without failures nothing is shorter than up and down in a tree.
class TreePresetTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TreePresetTest, UpDownRoutesAreTheShortestOnes) {
  FabricGraph fabric = MakePreset(GetParam()).value();
  ASSERT_EQ(fabric.routing, RoutingPolicy::kUpDown);
  const EcmpRouting up_down(fabric, 1);
  std::vector<NextHops> expected;
  const auto visit = [&](auto&& use) {
    for (DeviceId at{0}; at < fabric.device_count(); ++at) {
      if (fabric.device(at).kind != DeviceKind::kSwitch) continue;
      for (size_t gpu = 0; gpu < fabric.gpus().size(); gpu += 7) {
        use(at, Nic(fabric, static_cast<uint32_t>(gpu)));
      }
    }
  };
  visit([&](DeviceId at, DeviceId nic) { expected.push_back(up_down.NextHopsTo(at, nic)); });
  fabric.routing = RoutingPolicy::kShortest;
  const EcmpRouting shortest(fabric, 1);
  size_t i = 0;
  visit([&](DeviceId at, DeviceId nic) {
    const NextHops next = shortest.NextHopsTo(at, nic);
    // A core that reaches a NIC only by going up again has no up-down route.
    if (!expected[i].links.empty()) {
      EXPECT_EQ(next.links, expected[i].links) << fabric.device(at).name;
      EXPECT_EQ(next.hops, expected[i].hops);
    }
    ++i;
  });
}

INSTANTIATE_TEST_SUITE_P(Trees, TreePresetTest,
                         ::testing::Values("h100-4x8-rail-optimized", "h100-16x8-fat-tree",
                                           "h100-24x8-fat-tree-2to1", "h800-8x8-dual-tor",
                                           "h800-8x8-dual-plane", "h100-8x8-multi-plane"));

TEST(ValiantTest, RoutesOfATorusAreOnAverageAsLongAsTwoMeanDistances) {
  const FabricGraph fabric =
      MakeTorus({.network = Gpus(64), .dimensions = {8, 8}, .valiant = true});
  const EcmpRouting routing(fabric, 1);
  // A ring of 8 is 2 wide on average, itself included: 4 to any router and 4 from there.
  constexpr int kFlows = 4'000;
  double links = 0;
  for (uint64_t entropy = 0; entropy < kFlows; ++entropy) {
    const Path path = routing.Resolve(Nic(fabric, 0), Nic(fabric, 9), entropy);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(fabric.link_source(path.front()), Nic(fabric, 0));
    EXPECT_EQ(fabric.link_target(path.back()), Nic(fabric, 9));
    links += static_cast<double>(path.size() - 2);
  }
  // The sum of two distances deviates by at most 3.5.
  EXPECT_NEAR(links / kFlows, 8.0, 5 * 3.5 / 63);
}

// Valiant's purpose: every node of a group sends to the next group, which one cable joins. (Some
// routers find a path of the same three hops over a third group.)
TEST(ValiantTest, RoutesOfADragonflySpreadWhatMinimalOnesPutOnOneCable) {
  const auto most_on_a_global_cable = [](bool valiant) {
    const FabricGraph fabric = MakeDragonfly({.network = Gpus(72), .valiant = valiant});
    const EcmpRouting routing(fabric, 1);
    std::vector<uint32_t> flows(fabric.link_count());
    for (uint32_t gpu = 0; gpu < 72; ++gpu) {
      for (uint64_t entropy = 0; entropy < 50; ++entropy) {
        for (const LinkId link : routing.Resolve(Nic(fabric, gpu), Nic(fabric, (gpu + 8) % 72),
                                                 uint64_t{100} * gpu + entropy)) {
          if (fabric.link(link).tier == Tier::kGlobal) ++flows[link];
        }
      }
    }
    return *std::max_element(flows.begin(), flows.end());
  };
  EXPECT_GE(most_on_a_global_cable(false), 8u * 50 / 2);
  // At most two global hops for each of 3,600 flows over 72 links: 100 on average.
  EXPECT_LT(most_on_a_global_cable(true), 160u);
}

TEST(ValiantTest, FlowsBetweenNicsOfOneSwitchTakeNoDetour) {
  const FabricGraph fabric = MakeHyperX(
      {.network = Gpus(18), .dimensions = {3, 3}, .nics_per_switch = 2, .valiant = true});
  const EcmpRouting routing(fabric, 1);
  for (uint64_t entropy = 0; entropy < 20; ++entropy) {
    EXPECT_THAT(routing.Resolve(Nic(fabric, 0), Nic(fabric, 1), entropy), SizeIs(2));
  }
}

TEST(ValiantTest, EitherPartHasLosslessClassesOfItsOwn) {
  EXPECT_EQ(
      FindDeadlock(MakeTorus({.network = Gpus(16), .dimensions = {4, 4}, .valiant = true})).classes,
      4u);
  EXPECT_EQ(FindDeadlock(MakeHyperX({.network = Gpus(16), .dimensions = {4, 4}, .valiant = true}))
                .classes,
            2u);
  // Local, global, local, twice.
  EXPECT_EQ(FindDeadlock(MakeDragonfly({.network = Gpus(72), .valiant = true})).classes, 6u);
}

TEST(RunLengthsTest, GiveBackWhatWentIn) {
  const std::vector<uint32_t> values = {4, 4, 4, 0, 4, 4, UINT32_MAX, 7, 7};
  const RunLengths runs(values);
  for (uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(runs[i], values[i]) << i;
  EXPECT_EQ(runs.bytes(), 5 * (2 * sizeof(uint32_t)));
}

TEST(RouteTablesTest, ARailOptimizedFabricTakesAFewPercentOfADenseTable) {
  const FabricGraph fabric = MakePreset("h100-512x8-rail-optimized-core").value();
  const EcmpRouting routing(fabric, 1);
  routing.ResolveAll();
  const EcmpRouting::TableSize size = routing.MeasureTables();
  EXPECT_EQ(size.destinations, 128u);  // leaves
  EXPECT_EQ(size.dense_bytes, 128u * (128 + 128 + 32) * 4);
  EXPECT_LT(size.bytes * 10, size.dense_bytes);
}

}  // namespace
}  // namespace railyard
