// SPDX-License-Identifier: GPL-2.0-only
// Tests how switches and NICs route while news of a link has reached only some of them, under every
// policy, and the memory of their views.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/hyperx.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/platforms/platform.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The numbers of waves of news that goes on by a link at a time from both of the link's ends.
std::vector<uint32_t> WavesFrom(const EcmpRouting& routing, const FabricGraph& graph, LinkId link) {
  return routing.HopsFrom(link, {graph.link_source(link), graph.link_target(link)});
}

uint32_t LastWaveFrom(const EcmpRouting& routing, const FabricGraph& graph, LinkId link) {
  uint32_t last = 0;
  for (const uint32_t wave : WavesFrom(routing, graph, link)) {
    if (wave != EcmpRouting::kUnreachable) last = std::max(last, wave);
  }
  return last;
}

// Takes a link out of use, or into it again, up to so many links away from its ends.
struct SpreadNews {
  EcmpRouting& routing;
  const FabricGraph& graph;
  void operator()(LinkId link, bool up, uint32_t hops) const {
    routing.SpreadLinkState(link, up, hops, WavesFrom(routing, graph, link));
  }
};

// Leaves of one group, joined by two spines; the cable of leaf1 and spine0 fails.
class RoutingViewsTest : public ::testing::Test {
 protected:
  RoutingViewsTest() : graph_(MakeRailOptimized({.servers = 1, .spines = 2})), routing_(graph_, 1) {
    cable_ = graph_.cables()[graph_.FindCable("leaf1--spine0").value()];
  }
  void Spread(bool up, uint32_t hops) {
    const SpreadNews spread{routing_, graph_};
    spread(cable_.forward, up, hops);
    spread(cable_.backward, up, hops);
  }
  // Counts 64 flows from one rail to another by the spine they take; "" for those without a path.
  std::map<std::string, int> Spines(uint32_t from_rail, uint32_t to_rail) const {
    const auto nic = [&](uint32_t rail) {
      return graph_.FindDevice("server0/nic" + std::to_string(rail)).value();
    };
    std::map<std::string, int> flows;
    for (uint64_t entropy = 0; entropy < 64; ++entropy) {
      const Path path = routing_.Resolve(nic(from_rail), nic(to_rail), entropy);
      ++flows[path.empty() ? "" : graph_.device(graph_.link_target(path[1])).name];
    }
    return flows;
  }

  FabricGraph graph_;
  EcmpRouting routing_;
  Cable cable_;
};

TEST_F(RoutingViewsTest, ASwitchThatKnowsLaterSendsIntoACircleUntilItKnows) {
  graph_.routing = RoutingPolicy::kShortest;
  // leaf0 and its NIC are one and two hops from the cable, the NIC of another leaf as well.
  EXPECT_EQ(LastWaveFrom(routing_, graph_, cable_.forward), 2u);
  const std::map<std::string, int> before = Spines(0, 1);
  ASSERT_EQ(before.size(), 2u);
  Spread(false, 0);
  // spine0 sends them to other leaves, and those on by spine1, or back to it.
  std::map<std::string, int> meanwhile = Spines(0, 1);
  EXPECT_EQ(meanwhile["spine1"], before.at("spine1"));
  EXPECT_EQ(meanwhile["spine0"] + meanwhile[""], before.at("spine0"));
  EXPECT_GT(meanwhile[""], 0);
  // leaf1 knows, and nobody else is asked where it sends.
  EXPECT_EQ(Spines(1, 0), (std::map<std::string, int>{{"spine1", 64}}));
  EXPECT_EQ(Spines(2, 3).size(), 2u);
  Spread(false, 1);
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", 64}}));
  Spread(false, 2);
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", 64}}));
  // Back again: the other leaves do not use it before they know.
  Spread(true, 0);
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", 64}}));
  EXPECT_EQ(Spines(1, 0).size(), 2u);
  Spread(true, 1);
  EXPECT_EQ(Spines(0, 1), before);
}

TEST_F(RoutingViewsTest, AfterTheLastHopAllAgreeAsIfNotifiedAtOnce) {
  for (const bool up : {false, true}) {
    for (uint32_t hops = 0; hops <= LastWaveFrom(routing_, graph_, cable_.forward); ++hops) {
      Spread(up, hops);
    }
    EcmpRouting at_once(graph_, 1);
    at_once.SetLinkUp(cable_.forward, up);
    at_once.SetLinkUp(cable_.backward, up);
    for (const DeviceId from : graph_.gpus()) {
      for (const DeviceId to : graph_.gpus()) {
        EXPECT_EQ(routing_.Resolve(from, to, 5), at_once.Resolve(from, to, 5));
      }
    }
  }
}

TEST_F(RoutingViewsTest, EachSwitchAnswersForItself) {
  const auto id = [&](const char* name) { return graph_.FindDevice(name).value(); };
  const DeviceId nic = id("server0/nic1");
  Spread(false, 0);
  EXPECT_THAT(routing_.NextHopsTo(id("leaf0"), nic).links, SizeIs(2));
  EXPECT_THAT(routing_.NextHopsTo(id("spine0"), nic).links, IsEmpty()) << "never up again";
  Spread(false, 1);
  EXPECT_THAT(routing_.NextHopsTo(id("leaf0"), nic).links, SizeIs(1));
}

TEST_F(RoutingViewsTest, ASwitchOfATreeSendsNothingUpThatCameDown) {
  const std::map<std::string, int> before = Spines(0, 1);
  Spread(false, 0);
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", before.at("spine1")},
                                                      {"", before.at("spine0")}}));
  Spread(false, 1);
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", 64}}));
}

TEST_F(RoutingViewsTest, WhatChangesEverywhereChangesForThoseWithNewsToo) {
  const Cable& other = graph_.cables()[graph_.FindCable("leaf2--spine1").value()];
  const auto set_other = [&](EcmpRouting& routing) {
    routing.SetLinkUp(other.forward, false);
    routing.SetLinkUp(other.backward, false);
  };
  Spread(false, 0);
  ASSERT_EQ(Spines(1, 2), (std::map<std::string, int>{{"spine1", 64}}));
  set_other(routing_);
  EXPECT_EQ(Spines(1, 2), (std::map<std::string, int>{{"", 64}}));
  EXPECT_EQ(Spines(3, 2), (std::map<std::string, int>{{"spine0", 64}}));
  for (const uint32_t hops : {1u, 2u}) Spread(false, hops);
  EcmpRouting at_once(graph_, 1);
  at_once.SetLinkUp(cable_.forward, false);
  at_once.SetLinkUp(cable_.backward, false);
  set_other(at_once);
  for (const DeviceId from : graph_.gpus()) {
    for (const DeviceId to : graph_.gpus()) {
      EXPECT_EQ(routing_.Resolve(from, to, 5), at_once.Resolve(from, to, 5));
    }
  }
}

TEST_F(RoutingViewsTest, ALinkThatFailsAgainDoesNotCallBackTheNewsThatItFailed) {
  Spread(false, 0);
  Spread(false, 1);
  Spread(true, 0);
  Spread(false, 0);
  // leaf0 knows of the first failure, leaf1 and spine0 of all three.
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", 64}}));
  EXPECT_EQ(Spines(1, 0), (std::map<std::string, int>{{"spine1", 64}}));
  Spread(false, 2);
  Spread(true, 1);
  EXPECT_EQ(Spines(0, 1).count(""), 1u) << "leaf0 takes it to be up";
  Spread(true, 2);
  Spread(false, 1);
  Spread(false, 2);
  EXPECT_EQ(Spines(0, 1), (std::map<std::string, int>{{"spine1", 64}}));
}

TEST_F(RoutingViewsTest, ViewsThatAgreeOnLinksOfSwitchesShareOneTable) {
  const auto resolve_all = [&] {
    for (const DeviceId from : graph_.gpus()) {
      for (const DeviceId to : graph_.gpus()) routing_.Resolve(from, to, 5);
    }
    return routing_.MeasureTables();
  };
  const EcmpRouting::TableSize settled = resolve_all();
  EXPECT_EQ(settled.tables, 1u);
  EXPECT_EQ(settled.destinations, 8u);  // leaves
  // A NIC's link.
  const Cable& nic = graph_.cables()[graph_.FindCable("server0/nic0--leaf0").value()];
  const SpreadNews spread{routing_, graph_};
  spread(nic.forward, false, 0);
  spread(nic.forward, false, 1);
  EXPECT_EQ(resolve_all().tables, 1u);
  // Devices that know of the leaf's link share one table, whether they know of the NIC's or not.
  Spread(false, 0);
  EXPECT_EQ(resolve_all().tables, 2u);
  // Down and up again is as if nothing had been.
  Spread(true, 0);
  EXPECT_EQ(routing_.Resolve(graph_.gpus()[1], graph_.gpus()[2], 5),
            EcmpRouting(graph_, 1).Resolve(graph_.gpus()[1], graph_.gpus()[2], 5));
  for (uint32_t hops = 1; hops <= LastWaveFrom(routing_, graph_, cable_.forward); ++hops) {
    Spread(false, hops);
    Spread(true, hops);
  }
  for (uint32_t hops = 2; hops <= LastWaveFrom(routing_, graph_, nic.forward); ++hops) {
    spread(nic.forward, false, hops);
  }
  const EcmpRouting::TableSize after = resolve_all();
  EXPECT_EQ(after.tables, 1u);
  EXPECT_EQ(after.bytes, settled.bytes);
}

// Two leaves, each under two spines; two cores join all spines. The cable of leafB and spineB0 is
// cut.
TEST(RoutingViewsOfThreeTiersTest, ASpineThatKnowsFirstSendsNothingUpThatCameDown) {
  FabricGraph graph;
  graph.routing = RoutingPolicy::kUpDown;
  const auto add = [&](const std::string& name) { return graph.AddDevice({.name = name}); };
  const auto join = [&](DeviceId below, DeviceId above, Tier tier) {
    return graph.AddCable(below, above, {.tier = tier, .rate_bps = 400'000'000'000});
  };
  const DeviceId cores[] = {add("core0"), add("core1")};
  std::vector<DeviceId> nics;
  std::vector<DeviceId> leaves;
  std::vector<DeviceId> spines;
  for (const char* pod : {"A", "B"}) {
    nics.push_back(graph.AddDevice({.name = std::string("nic") + pod,
                                    .kind = DeviceKind::kNic,
                                    .server = ServerIndex{nics.size()},
                                    .local_index = 0}));
    leaves.push_back(add(std::string("leaf") + pod));
    join(nics.back(), leaves.back(), Tier::kNicLeaf);
    for (const char* index : {"0", "1"}) {
      spines.push_back(add("spine" + (pod + std::string(index))));
      join(leaves.back(), spines.back(), Tier::kLeafSpine);
      for (const DeviceId core : cores) join(spines.back(), core, Tier::kSpineCore);
    }
  }
  EcmpRouting routing(graph, 1);
  const LinkId cut = graph.FindLink(spines[2], leaves[1]).value();
  const auto lengths = [&] {
    std::map<size_t, int> flows;
    for (uint64_t entropy = 0; entropy < 64; ++entropy) {
      ++flows[routing.Resolve(nics[0], nics[1], entropy).size()];
    }
    return flows;
  };
  ASSERT_EQ(lengths(), (std::map<size_t, int>{{6, 64}}));
  const SpreadNews spread{routing, graph};
  spread(cut, false, 0);
  // spineB0 has a way for what leafB sends it, by a core and the other spine; not for this.
  EXPECT_EQ(routing.NextHopsTo(spines[2], nics[1]).hops, 4u);
  std::map<size_t, int> meanwhile = lengths();
  EXPECT_GT(meanwhile[0], 0);
  EXPECT_EQ(meanwhile[0] + meanwhile[6], 64);
  spread(cut, false, 1);  // the cores
  EXPECT_EQ(lengths(), (std::map<size_t, int>{{6, 64}}));
}

// No matter which switch draws a detour, the one at a link's end knows that it is dead.
TEST(ValiantViewsTest, NoFlowEntersALinkOfWhichItsEndsKnow) {
  NetworkSpec network;
  network.servers = {ServerOfPlatform("single-gpu")};
  network.servers[0].count = 9;
  const FabricGraph graph =
      MakeHyperX({.network = network, .dimensions = {3, 3}, .nics_per_switch = 1, .valiant = true});
  EcmpRouting routing(graph, 1);
  EcmpRouting at_once(graph, 1);
  const auto switch_of = [&](uint32_t gpu) {
    return graph.link_target(routing.Resolve(graph.gpus()[gpu], graph.gpus()[8 - gpu], 0)[1]);
  };
  const LinkId cut = graph.FindLink(switch_of(0), switch_of(1)).value();
  const auto resolve = [&](const EcmpRouting& by) {
    std::vector<Path> paths;
    for (const DeviceId from : graph.gpus()) {
      for (const DeviceId to : graph.gpus()) {
        for (uint64_t entropy = 0; entropy < 8; ++entropy) {
          paths.push_back(by.Resolve(from, to, entropy));
        }
      }
    }
    return paths;
  };
  const auto crosses = [&](const Path& path) {
    return std::find(path.begin(), path.end(), cut) != path.end();
  };
  std::vector<Path> paths = resolve(routing);
  EXPECT_GT(std::count_if(paths.begin(), paths.end(), crosses), 0);
  at_once.SetLinkUp(cut, false);
  for (uint32_t hops = 0; hops <= LastWaveFrom(routing, graph, cut); ++hops) {
    SpreadNews{routing, graph}(cut, false, hops);
    paths = resolve(routing);
    EXPECT_EQ(std::count_if(paths.begin(), paths.end(), crosses), 0) << hops;
  }
  EXPECT_EQ(resolve(routing), resolve(at_once));
}

}  // namespace
}  // namespace railyard
