// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/lossless_classes.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/dragonfly.h"
#include "topologies/generators/hyperx.h"
#include "topologies/generators/leaf_spine.h"
#include "topologies/generators/torus.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

NetworkSpec Gpus(uint32_t count) {
  return {.servers = {{.count = count, .gpus = 1, .nvlink_lanes = {}}}};
}

Path Links(const FabricGraph& fabric, const std::vector<std::string>& devices) {
  Path path;
  for (size_t i = 0; i + 1 < devices.size(); ++i) {
    path.push_back(
        *fabric.FindLink(*fabric.FindDevice(devices[i]), *fabric.FindDevice(devices[i + 1])));
  }
  return path;
}

// Dally, Seitz 1987: the second class from the wrap-around cable on, until the ring is left.
TEST(LosslessClassesTest, ATorusChangesClassBehindEachRingsDateline) {
  const FabricGraph fabric = MakeTorus({.network = Gpus(16), .dimensions = {4, 4}});
  const LosslessClasses classes(fabric);
  EXPECT_EQ(classes.count(), 2u);
  EXPECT_THAT(classes.OfPath(Links(fabric, {"server0/nic0", "router0.0", "router1.0", "router2.0"}),
                             std::nullopt),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(classes.OfPath(Links(fabric, {"router2.0", "router3.0", "router0.0", "router1.0",
                                            "router1.1", "router1.0", "router1.3", "router1.2"}),
                             std::nullopt),
              ElementsAre(0, 1, 1, 0, 0, 1, 1));
}

TEST(LosslessClassesTest, AValiantDetourBeginsClassesOfItsOwn) {
  const FabricGraph torus = MakeTorus({.network = Gpus(16), .dimensions = {4, 4}, .valiant = true});
  const LosslessClasses of_torus(torus);
  EXPECT_EQ(of_torus.count(), 4u);
  EXPECT_THAT(of_torus.OfPath(Links(torus, {"router2.0", "router3.0", "router0.0", "router1.0",
                                            "router0.0", "router3.0"}),
                              3),
              ElementsAre(0, 1, 1, 2, 3));
  const FabricGraph hyperx =
      MakeHyperX({.network = Gpus(16), .dimensions = {4, 4}, .valiant = true});
  const LosslessClasses of_hyperx(hyperx);
  EXPECT_EQ(of_hyperx.count(), 2u);
}

// On every drawn route classes increase a step at a time, and never return to a class before the
// detour's; without a detour there are at most as many as counted.
TEST(LosslessClassesTest, RoutesNeverLeaveTheClassesThatAreCounted) {
  const FabricGraph fabric = MakeDragonfly({.network = Gpus(72), .valiant = true});
  const LosslessClasses classes(fabric);
  EXPECT_EQ(classes.count(), 6u);
  const EcmpRouting routing(fabric, 1);
  std::set<uint8_t> seen;
  for (uint64_t entropy = 0; entropy < 500; ++entropy) {
    std::optional<uint32_t> detour_hop;
    const Path path = routing.Resolve(fabric.gpus()[entropy % 72],
                                      fabric.gpus()[(entropy * 7 + 35) % 72], entropy, &detour_hop);
    if (path.empty()) continue;
    const std::vector<uint8_t> of_path = classes.OfPath(path, detour_hop);
    for (size_t hop = 3; hop + 2 < path.size(); ++hop) {
      EXPECT_EQ(of_path[hop], of_path[hop - 1] + 1) << "a class for each hop between switches";
    }
    EXPECT_EQ(of_path.front() + of_path.back(), 0) << "host links";
    seen.insert(of_path.begin(), of_path.end());
  }
  EXPECT_LE(*seen.rbegin(), 5);
  EXPECT_GT(*seen.rbegin(), 2);
}

TEST(LosslessClassesTest, FailuresThatLengthenARouteLeaveItsEndInTheLastClass) {
  FabricGraph fabric = MakeTorus({.network = Gpus(6), .dimensions = {6}});
  fabric.routing = RoutingPolicy::kShortest;
  fabric.deadlock_avoidance = DeadlockAvoidance::kHopClasses;
  const LosslessClasses classes(fabric);
  EXPECT_EQ(classes.count(), 3u);
  EXPECT_THAT(classes.OfPath(Links(fabric, {"server0/nic0", "router0", "router1", "router2",
                                            "router3", "router4", "router5"}),
                             std::nullopt),
              ElementsAre(0, 0, 1, 2, 2, 2));
}

TEST(LosslessClassesTest, TreesHaveOneClass) {
  const FabricGraph fabric = MakeLeafSpine({.network = Gpus(8), .nics_per_leaf = 4});
  const LosslessClasses classes(fabric);
  EXPECT_EQ(classes.count(), 1u);
  EXPECT_THAT(classes.OfPath(Links(fabric, {"server0/nic0", "leaf0", "spine0"}), std::nullopt),
              ElementsAre(0, 0));
}

}  // namespace
}  // namespace railyard
