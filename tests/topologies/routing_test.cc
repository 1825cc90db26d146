// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/routing.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/rail_optimized.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Names(const FabricGraph& graph, const Path& path) {
  std::vector<std::string> names;
  for (const LinkId link : path) names.push_back(graph.link(link).name);
  return names;
}

bool IsConnected(const FabricGraph& graph, const Path& path) {
  for (size_t i = 1; i < path.size(); ++i) {
    if (graph.link_target(path[i - 1]) != graph.link_source(path[i])) return false;
  }
  return true;
}

class RoutingTest : public ::testing::Test {
 protected:
  DeviceId Id(const std::string& name) const { return graph_.FindDevice(name).value(); }
  Path Resolve(const std::string& from, const std::string& to, uint64_t entropy = 7) const {
    return routing_.Resolve(Id(from), Id(to), entropy);
  }
  uint64_t Count(const std::string& from, const std::string& to) const {
    return routing_.CountShortestPaths(Id(from), Id(to));
  }
  void SetForward(const std::string& cable, bool up) {
    routing_.SetLinkUp(graph_.cables()[graph_.FindCable(cable).value()].forward, up);
  }
  void SetBackward(const std::string& cable, bool up) {
    routing_.SetLinkUp(graph_.cables()[graph_.FindCable(cable).value()].backward, up);
  }
  void SetCable(const std::string& cable, bool up) {
    SetForward(cable, up);
    SetBackward(cable, up);
  }

  // Two groups of two servers, three spines, two links between each leaf and each spine.
  FabricGraph graph_ = MakeRailOptimized(
      {.servers = 4, .servers_per_leaf = 2, .spines = 3, .links_per_leaf_and_spine = 2});
  EcmpRouting routing_{graph_, 1};
};

TEST_F(RoutingTest, NicsOfOneRailAndGroupAreTwoLinksApart) {
  EXPECT_THAT(Names(graph_, Resolve("server0/nic3", "server1/nic3")),
              ElementsAre("server0/nic3>group0/leaf3", "group0/leaf3>server1/nic3"));
  EXPECT_EQ(Count("server0/nic3", "server1/nic3"), 1u);
}

TEST_F(RoutingTest, OtherRailsAndGroupsAreFourLinksApartOverASpine) {
  for (const char* to : {"server1/nic4", "server2/nic3", "server3/nic0"}) {
    const Path path = Resolve("server0/nic3", to);
    ASSERT_THAT(path, SizeIs(4)) << to;
    EXPECT_TRUE(IsConnected(graph_, path));
    EXPECT_EQ(graph_.link_source(path.front()), Id("server0/nic3"));
    EXPECT_EQ(graph_.link_target(path.back()), Id(to));
    EXPECT_EQ(graph_.link(path[1]).tier, Tier::kLeafSpine);
    EXPECT_EQ(graph_.link(path[2]).tier, Tier::kLeafSpine);
    // 3 spines x 2 links up x 2 links down.
    EXPECT_EQ(Count("server0/nic3", to), 12u) << to;
  }
}

TEST_F(RoutingTest, AGpuGoesThroughItsOwnNic) {
  EXPECT_THAT(Names(graph_, Resolve("server0/gpu3", "server1/gpu3")),
              ElementsAre("server0/gpu3>server0/nic3", "server0/nic3>group0/leaf3",
                          "group0/leaf3>server1/nic3", "server1/nic3>server1/gpu3"));
  EXPECT_THAT(Names(graph_, Resolve("server0/gpu3", "server1/nic3")), SizeIs(3));
  EXPECT_THAT(Names(graph_, Resolve("server0/gpu3", "server0/nic3")),
              ElementsAre("server0/gpu3>server0/nic3"));
  EXPECT_THAT(Names(graph_, Resolve("server0/nic3", "server0/gpu3")),
              ElementsAre("server0/nic3>server0/gpu3"));
  EXPECT_EQ(Count("server0/gpu3", "server2/gpu3"), 12u);
  EXPECT_EQ(Count("server0/gpu3", "server0/nic3"), 1u);
}

TEST_F(RoutingTest, NoPathLeadsThroughAServerThatIsNeitherEnd) {
  for (uint64_t entropy = 0; entropy < 64; ++entropy) {
    const Path path = Resolve("server0/gpu0", "server0/gpu5", entropy);
    ASSERT_THAT(path, SizeIs(6)) << "over the network, never over the NVSwitches";
    for (size_t i = 1; i + 2 < path.size(); ++i) {
      EXPECT_EQ(graph_.device(graph_.link_target(path[i])).kind, DeviceKind::kSwitch);
    }
  }
}

TEST_F(RoutingTest, ADeviceHasNoPathToItself) {
  EXPECT_THAT(Resolve("server0/nic0", "server0/nic0"), IsEmpty());
  EXPECT_EQ(Count("server0/gpu0", "server0/gpu0"), 0u);
}

TEST_F(RoutingTest, TheSameSeedAndEntropyTakeTheSamePath) {
  const EcmpRouting same(graph_, 1);
  const EcmpRouting other(graph_, 2);
  int different = 0;
  for (uint64_t entropy = 0; entropy < 100; ++entropy) {
    const Path path = Resolve("server0/nic0", "server2/nic1", entropy);
    EXPECT_EQ(path, same.Resolve(Id("server0/nic0"), Id("server2/nic1"), entropy));
    different += path != other.Resolve(Id("server0/nic0"), Id("server2/nic1"), entropy);
  }
  // Another one of 12 paths is taken 11 times out of 12; the standard deviation of 100 draws is
  // 2.8.
  EXPECT_NEAR(different, 100.0 * 11 / 12, 5 * 2.8);
}

TEST_F(RoutingTest, FlowsSpreadEvenlyOverAllPaths) {
  const int flows = 12'000;
  std::map<Path, int> flows_on;
  for (int entropy = 0; entropy < flows; ++entropy) {
    ++flows_on[Resolve("server0/nic0", "server3/nic5", static_cast<uint64_t>(entropy))];
  }
  EXPECT_THAT(flows_on, SizeIs(12));
  // Binomial: mean n/12, standard deviation sqrt(n x 1/12 x 11/12). That all twelve paths are used
  // also shows that the spine's choice does not follow from the leaf's (polarisation).
  const double deviation = std::sqrt(flows / 12.0 * 11 / 12);
  for (const auto& [path, count] : flows_on) EXPECT_NEAR(count, flows / 12.0, 5 * deviation);
}

TEST_F(RoutingTest, SwitchesChooseIndependently) {
  // Two leaves send a flow to the same spine with probability 1/3.
  const int flows = 3'000;
  int agreed = 0;
  for (int i = 0; i < flows; ++i) {
    const auto entropy = static_cast<uint64_t>(i);
    const Path a = Resolve("server0/nic0", "server2/nic0", entropy);
    const Path b = Resolve("server0/nic1", "server2/nic0", entropy);
    agreed += graph_.link_target(a[1]) == graph_.link_target(b[1]);
  }
  EXPECT_NEAR(agreed, flows / 3.0, 5 * std::sqrt(flows / 3.0 * 2 / 3));
}

TEST_F(RoutingTest, ALinkThatIsDownIsAvoidedAndComesBack) {
  SetCable("group0/leaf0--spine1#2", false);
  // 1 + 2 x 2 links up, each to a spine with 2 links down.
  EXPECT_EQ(Count("server0/nic0", "server2/nic0"), 10u);
  const LinkId down = graph_.cables()[graph_.FindCable("group0/leaf0--spine1#2").value()].forward;
  for (uint64_t entropy = 0; entropy < 500; ++entropy) {
    EXPECT_THAT(Resolve("server0/nic0", "server2/nic0", entropy),
                ::testing::Not(::testing::Contains(down)));
  }
  SetCable("group0/leaf0--spine1#2", true);
  EXPECT_EQ(Count("server0/nic0", "server2/nic0"), 12u);
}

TEST_F(RoutingTest, OneDirectionOfACableGoesDownAlone) {
  SetForward("group0/leaf0--spine1#1", false);
  EXPECT_EQ(Count("server0/nic0", "server2/nic0"), 10u);
  EXPECT_EQ(Count("server2/nic0", "server0/nic0"), 12u);
  SetForward("group0/leaf0--spine1#1", true);
  SetBackward("group0/leaf0--spine1#1", false);
  EXPECT_EQ(Count("server0/nic0", "server2/nic0"), 12u);
  EXPECT_EQ(Count("server2/nic0", "server0/nic0"), 10u);
}

TEST_F(RoutingTest, ASpineThatCannotReachTheDestinationIsNotUsed) {
  // Remote failure: spine1 has no link left down to the destination's leaf.
  SetBackward("group1/leaf0--spine1#1", false);
  SetBackward("group1/leaf0--spine1#2", false);
  EXPECT_EQ(Count("server0/nic0", "server2/nic0"), 8u);
  for (uint64_t entropy = 0; entropy < 200; ++entropy) {
    EXPECT_NE(graph_.link_target(Resolve("server0/nic0", "server2/nic0", entropy)[1]),
              Id("spine1"));
  }
}

TEST_F(RoutingTest, TheLongerWayIsTakenWhereTheShortOneIsCut) {
  graph_.routing = RoutingPolicy::kShortest;
  for (const char* spine : {"spine0", "spine1"}) {
    SetCable("group0/leaf0--" + std::string(spine) + "#1", false);
    SetCable("group0/leaf0--" + std::string(spine) + "#2", false);
    SetCable("group1/leaf0--spine2#1", false);
    SetCable("group1/leaf0--spine2#2", false);
  }
  // leaf0 up to spine2 (2), any of 14 other leaves (2 each), spine0 or spine1 (2 each), down (2).
  const Path path = Resolve("server0/nic0", "server2/nic0");
  EXPECT_THAT(path, SizeIs(6));
  EXPECT_TRUE(IsConnected(graph_, path));
  EXPECT_EQ(Count("server0/nic0", "server2/nic0"), 2u * (14 * 2) * (2 * 2) * 2);
}

TEST_F(RoutingTest, TheLastPathCutLeavesNone) {
  SetForward("server0/nic0--group0/leaf0", false);
  EXPECT_THAT(Resolve("server0/nic0", "server1/nic0"), IsEmpty());
  EXPECT_THAT(Resolve("server0/gpu0", "server1/gpu0"), IsEmpty());
  EXPECT_EQ(Count("server0/nic0", "server2/nic1"), 0u);
  EXPECT_THAT(Resolve("server1/nic0", "server0/nic0"), SizeIs(2)) << "the way back is whole";
  SetBackward("server0/nic0--group0/leaf0", false);
  EXPECT_THAT(Resolve("server1/nic0", "server0/nic0"), IsEmpty());
  EXPECT_THAT(Resolve("server2/nic0", "server0/nic0"), IsEmpty());
  EXPECT_EQ(Count("server2/nic0", "server0/nic0"), 0u);
  SetCable("server0/nic0--group0/leaf0", true);
  EXPECT_THAT(Resolve("server0/nic0", "server1/nic0"), SizeIs(2));
}

TEST_F(RoutingTest, AHostLinkThatIsDownCutsItsGpuAndNotItsNic) {
  SetForward("server0/gpu0--server0/nic0", false);
  EXPECT_THAT(Resolve("server0/gpu0", "server1/gpu0"), IsEmpty());
  EXPECT_EQ(Count("server0/gpu0", "server1/gpu0"), 0u);
  EXPECT_THAT(Resolve("server1/gpu0", "server0/gpu0"), SizeIs(4));
  EXPECT_THAT(Resolve("server0/nic0", "server1/gpu0"), SizeIs(3));
}

TEST_F(RoutingTest, AnIsolatedLeafIsUnreachable) {
  for (int spine = 0; spine < 3; ++spine) {
    for (const char* link : {"#1", "#2"}) {
      SetForward("group0/leaf0--spine" + std::to_string(spine) + link, false);
    }
  }
  EXPECT_THAT(Resolve("server0/nic0", "server2/nic0"), IsEmpty());
  EXPECT_THAT(Resolve("server0/nic0", "server1/nic0"), SizeIs(2));
  EXPECT_THAT(Resolve("server2/nic0", "server0/nic0"), SizeIs(4));
}

// NICs with two ports, each to a plane of its own.
class DualPlaneRoutingTest : public ::testing::Test {
 protected:
  DualPlaneRoutingTest() {
    const CableSpec port = {.tier = Tier::kNicLeaf, .rate_bps = 200'000'000'000};
    for (const DeviceId nic : {nic0_, nic1_}) {
      for (const DeviceId plane : {plane0_, plane1_}) graph_.AddCable(nic, plane, port);
    }
  }

  FabricGraph graph_;
  DeviceId nic0_ = graph_.AddDevice(
      {.name = "nic0", .kind = DeviceKind::kNic, .server = ServerIndex{0}, .local_index = 0});
  DeviceId nic1_ = graph_.AddDevice(
      {.name = "nic1", .kind = DeviceKind::kNic, .server = ServerIndex{1}, .local_index = 0});
  DeviceId plane0_ = graph_.AddDevice({.name = "plane0"});
  DeviceId plane1_ = graph_.AddDevice({.name = "plane1"});
};

TEST_F(DualPlaneRoutingTest, EachPortIsAPathAndOneSurvivesTheOther) {
  EcmpRouting routing(graph_, 1);
  EXPECT_EQ(routing.CountShortestPaths(nic0_, nic1_), 2u);
  routing.SetLinkUp(graph_.FindLink(plane0_, nic1_).value(), false);
  EXPECT_EQ(routing.CountShortestPaths(nic0_, nic1_), 1u);
  for (uint64_t entropy = 0; entropy < 32; ++entropy) {
    const Path path = routing.Resolve(nic0_, nic1_, entropy);
    ASSERT_THAT(path, SizeIs(2));
    EXPECT_EQ(graph_.link_target(path[0]), plane1_);
  }
}

TEST_F(DualPlaneRoutingTest, ACableBetweenTwoNicsIsTheShortestPath) {
  graph_.AddCable(nic0_, nic1_, {.tier = Tier::kDirect, .rate_bps = 400'000'000'000});
  EcmpRouting routing(graph_, 1);
  EXPECT_THAT(Names(graph_, routing.Resolve(nic0_, nic1_, 0)), ElementsAre("nic0>nic1"));
  routing.SetLinkUp(graph_.FindLink(nic0_, nic1_).value(), false);
  EXPECT_THAT(routing.Resolve(nic0_, nic1_, 0), SizeIs(2));
}

TEST(RoutingWithoutNicsTest, AGpuWithoutANicReachesNobody) {
  FabricGraph graph;
  const DeviceId a = graph.AddDevice(
      {.name = "a", .kind = DeviceKind::kGpu, .server = ServerIndex{0}, .local_index = 0});
  const DeviceId b = graph.AddDevice(
      {.name = "b", .kind = DeviceKind::kGpu, .server = ServerIndex{0}, .local_index = 1});
  graph.AddCable(a, b, {.tier = Tier::kNvlink, .rate_bps = 1'000'000});
  EXPECT_THAT(EcmpRouting(graph, 1).Resolve(a, b, 0), IsEmpty());
}

}  // namespace
}  // namespace railyard
