// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/deadlock.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/fat_tree.h"
#include "topologies/generators/hyperx.h"
#include "topologies/generators/jellyfish.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/generators/torus.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

using ::testing::IsEmpty;

FabricGraph Torus(std::vector<uint32_t> dimensions) {
  uint32_t routers = 1;
  for (const uint32_t dimension : dimensions) routers *= dimension;
  return MakeTorus({.network = {.servers = {{.count = routers, .gpus = 1, .nvlink_lanes = {}}}},
                    .dimensions = std::move(dimensions)});
}

// Each link of the cycle ends where the next begins, around the whole of it.
void ExpectClosed(const FabricGraph& fabric, const std::vector<std::string>& cycle) {
  ASSERT_GE(cycle.size(), 2u);
  const auto ends = [&](const std::string& link) {
    const size_t separator = link.find('>');
    return std::pair(link.substr(0, separator), link.substr(separator + 1));
  };
  for (size_t i = 0; i < cycle.size(); ++i) {
    const auto [from, to] = ends(cycle[i]);
    EXPECT_TRUE(fabric.FindDevice(from).has_value()) << cycle[i];
    EXPECT_EQ(to, ends(cycle[(i + 1) % cycle.size()]).first);
  }
}

// Dally, Seitz 1987: a ring whose routes go on for two cables or more waits for itself in one
// class, and not in two with a dateline.
TEST(DeadlockTest, ARingOfFourWithOneClassWaitsForItself) {
  for (const std::vector<uint32_t>& dimensions :
       {std::vector<uint32_t>{4}, {5}, {8, 8}, {4, 4, 4}}) {
    FabricGraph fabric = Torus(dimensions);
    EXPECT_THAT(FindDeadlock(fabric).cycle, IsEmpty());
    EXPECT_EQ(FindDeadlock(fabric).classes, 2u);
    fabric.deadlock_avoidance = DeadlockAvoidance::kRoutes;
    const DeadlockReport report = FindDeadlock(fabric);
    ExpectClosed(fabric, report.cycle);
    EXPECT_EQ(report.cycle.size(), dimensions.back()) << "one ring";
  }
}

TEST(DeadlockTest, ARingOfThreeHasNoRouteOfTwoCables) {
  FabricGraph fabric = Torus({3, 3});
  fabric.deadlock_avoidance = DeadlockAvoidance::kRoutes;
  EXPECT_THAT(FindDeadlock(fabric).cycle, IsEmpty());
}

TEST(DeadlockTest, TheOrderOfDimensionsIsWhatKeepsAHyperXFree) {
  FabricGraph fabric = MakeHyperX(
      {.network = {.servers = {{.count = 9}}}, .dimensions = {3, 3}, .nics_per_switch = 8});
  EXPECT_THAT(FindDeadlock(fabric).cycle, IsEmpty());
  fabric.routing = RoutingPolicy::kShortest;
  ExpectClosed(fabric, FindDeadlock(fabric).cycle);
}

TEST(DeadlockTest, TreesNeedOneClass) {
  for (const FabricGraph& fabric :
       {MakeFatTree({.network = {.servers = {{.count = 16}}}, .radix = 8}),
        MakeRailOptimized(
            {.servers = 8, .servers_per_leaf = 2, .spines = 2, .cores = 2, .groups_per_pod = 2})}) {
    const DeadlockReport report = FindDeadlock(fabric);
    EXPECT_THAT(report.cycle, IsEmpty());
    EXPECT_EQ(report.classes, 1u);
  }
}

TEST(DeadlockTest, ARandomGraphWaitsForItselfUnlessItCountsHopsOrDrops) {
  FabricGraph fabric = MakeJellyfish({.network = {.servers = {{.count = 8}}}});
  EXPECT_THAT(FindDeadlock(fabric).cycle, IsEmpty());
  EXPECT_GE(FindDeadlock(fabric).classes, 2u);
  fabric.deadlock_avoidance = DeadlockAvoidance::kLossy;
  EXPECT_EQ(FindDeadlock(fabric).classes, 0u);
  fabric.deadlock_avoidance = DeadlockAvoidance::kRoutes;
  ExpectClosed(fabric, FindDeadlock(fabric).cycle);
}

TEST(DeadlockTest, EveryPresetIsFree) {
  for (const Preset& preset : Presets()) {
    const DeadlockReport report = FindDeadlock(*MakePreset(preset.name));
    EXPECT_THAT(report.cycle, IsEmpty()) << preset.name;
    EXPECT_LE(report.classes, 8u) << preset.name;
    EXPECT_FALSE(report.is_sampled) << preset.name;
  }
}

}  // namespace
}  // namespace railyard
