// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/fabric_graph.h"

#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two GPUs on two NVSwitches and one NIC; the NIC and a switch with two cables between them.
class FabricGraphTest : public ::testing::Test {
 protected:
  DeviceId AddInServer(const char* name, DeviceKind kind, int32_t local_index) {
    return graph_.AddDevice(
        {.name = name, .kind = kind, .server = ServerIndex{0}, .local_index = local_index});
  }

  FabricGraph graph_;
  DeviceId gpu0_ = AddInServer("gpu0", DeviceKind::kGpu, 0);
  DeviceId gpu1_ = AddInServer("gpu1", DeviceKind::kGpu, 1);
  DeviceId nvswitch0_ = AddInServer("nvswitch0", DeviceKind::kNvSwitch, 0);
  DeviceId nvswitch1_ = AddInServer("nvswitch1", DeviceKind::kNvSwitch, 1);
  DeviceId nic0_ = AddInServer("nic0", DeviceKind::kNic, 0);
  DeviceId leaf_ = graph_.AddDevice({.name = "leaf", .forwarding_latency_ps = 300'000});
  CableSpec host_ = {.tier = Tier::kHost, .rate_bps = 440, .propagation_ps = 450};
  CableSpec nvlink_ = {.tier = Tier::kNvlink, .rate_bps = 1'000, .propagation_ps = 200, .lanes = 5};
  CableSpec nic_leaf_ = {.tier = Tier::kNicLeaf, .rate_bps = 400, .propagation_ps = 145};
};

TEST_F(FabricGraphTest, ACableIsTwoDirectedLinksWithTheSameProperties) {
  const uint32_t index = graph_.AddCable(gpu0_, nvswitch0_, nvlink_);
  ASSERT_EQ(graph_.link_count(), 2u);
  const Cable& cable = graph_.cables()[index];
  EXPECT_EQ(cable.name, "gpu0--nvswitch0");
  EXPECT_EQ(graph_.link(cable.forward).name, "gpu0>nvswitch0");
  EXPECT_EQ(graph_.link(cable.backward).name, "nvswitch0>gpu0");
  EXPECT_EQ(graph_.link_source(cable.forward), gpu0_);
  EXPECT_EQ(graph_.link_target(cable.forward), nvswitch0_);
  EXPECT_EQ(graph_.link_source(cable.backward), nvswitch0_);
  EXPECT_EQ(graph_.link_target(cable.backward), gpu0_);
  EXPECT_EQ(graph_.ReverseLink(cable.forward), cable.backward);
  EXPECT_EQ(graph_.ReverseLink(cable.backward), cable.forward);
  for (const LinkId link : {cable.forward, cable.backward}) {
    EXPECT_EQ(graph_.link(link).cable, index);
    EXPECT_EQ(graph_.link(link).tier, Tier::kNvlink);
    EXPECT_EQ(graph_.link(link).rate_bps, 1'000u);
    EXPECT_EQ(graph_.link(link).propagation_ps, 200);
    EXPECT_EQ(graph_.link(link).lanes, 5u);
  }
}

// Servers need not have all local indices, nor their GPUs the order of these.
TEST_F(FabricGraphTest, AGpuIsFoundByItsServerAndLocalIndex) {
  const auto add = [this](const char* name, int32_t server, int32_t local_index) {
    graph_.AddDevice({.name = name,
                      .kind = DeviceKind::kGpu,
                      .server = ServerIndex{server},
                      .local_index = local_index});
    return GpuIndex{graph_.gpus().size() - 1};
  };
  const GpuIndex of_index_7 = add("server2/gpu7", 2, 7);
  const GpuIndex of_index_3 = add("server2/gpu3", 2, 3);
  EXPECT_EQ(graph_.FindGpuOfServer(of_index_7, 3), of_index_3);
  EXPECT_EQ(graph_.GpuOfServer(of_index_3, 7), of_index_7);
  EXPECT_EQ(graph_.FindGpuOfServer(of_index_3, 0), std::nullopt);
  EXPECT_EQ(graph_.FindGpuOfServer(GpuIndex{0}, 1), GpuIndex{1});
  const std::vector<GpuIndex> apart = {GpuIndex{0}, of_index_7};
  const std::vector<GpuIndex> together = {of_index_3, of_index_7};
  EXPECT_TRUE(graph_.AreOnSeparateServers(apart));
  EXPECT_FALSE(graph_.AreOnSeparateServers(together));
}

TEST_F(FabricGraphTest, ACableIsFoundByEitherEndFirst) {
  const uint32_t cable = graph_.AddCable(nic0_, leaf_, nic_leaf_);
  EXPECT_EQ(graph_.FindCable("nic0--leaf"), cable);
  EXPECT_EQ(graph_.FindCable("leaf--nic0"), cable);
  EXPECT_EQ(graph_.FindCable("nic0--leaf#1"), std::nullopt);
  EXPECT_EQ(graph_.FindCable("nic0-leaf"), std::nullopt);
  EXPECT_EQ(graph_.FindCable("nic0--spine"), std::nullopt);
  EXPECT_EQ(graph_.FindCable(""), std::nullopt);
}

TEST_F(FabricGraphTest, ParallelCablesAreNumberedFromOne) {
  const uint32_t first = graph_.AddCable(nic0_, leaf_, nic_leaf_);
  const uint32_t second = graph_.AddCable(nic0_, leaf_, nic_leaf_);
  const uint32_t third = graph_.AddCable(leaf_, nic0_, nic_leaf_);
  EXPECT_EQ(graph_.cables()[first].name, "nic0--leaf#1");
  EXPECT_EQ(graph_.cables()[second].name, "nic0--leaf#2");
  EXPECT_EQ(graph_.cables()[third].name, "leaf--nic0#3");
  EXPECT_EQ(graph_.link(graph_.cables()[second].backward).name, "leaf>nic0#2");
  EXPECT_EQ(graph_.FindCable("leaf--nic0#1"), first);
  EXPECT_EQ(graph_.FindCable("nic0--leaf#3"), third);
  EXPECT_EQ(graph_.FindCable("nic0--leaf"), std::nullopt) << "which of the three?";
  EXPECT_EQ(graph_.FindLink(nic0_, leaf_), graph_.cables()[first].forward);
  EXPECT_EQ(graph_.FindLink(leaf_, nic0_), graph_.cables()[first].backward);
}

TEST_F(FabricGraphTest, EveryEdgeKnowsItsLink) {
  graph_.AddCable(gpu0_, nic0_, host_);
  graph_.AddCable(nic0_, leaf_, nic_leaf_);
  graph_.AddCable(nic0_, leaf_, nic_leaf_);
  const auto [begin, end] = boost::edges(graph_.graph());
  uint32_t edges = 0;
  for (auto edge = begin; edge != end; ++edge, ++edges) {
    const LinkId link = graph_.link_of_edge(*edge);
    EXPECT_EQ(graph_.link_source(link), boost::source(*edge, graph_.graph()));
    EXPECT_EQ(graph_.link_target(link), boost::target(*edge, graph_.graph()));
    EXPECT_EQ(&graph_.link(link), &graph_.graph()[*edge]);
  }
  EXPECT_EQ(edges, 6u);
}

TEST_F(FabricGraphTest, LinksStayValidWhenTheFabricIsMoved) {
  const uint32_t cable = graph_.AddCable(nic0_, leaf_, nic_leaf_);
  FabricGraph moved = std::move(graph_);
  EXPECT_EQ(moved.link(moved.cables()[cable].forward).rate_bps, 400u);
  EXPECT_EQ(moved.FindDevice("leaf"), leaf_);
  EXPECT_EQ(moved.device(leaf_).forwarding_latency_ps, 300'000);
}

TEST_F(FabricGraphTest, GpusAreNumberedInTheOrderOfCreation) {
  EXPECT_THAT(graph_.gpus(), ElementsAre(gpu0_, gpu1_));
  EXPECT_EQ(graph_.server_count(), 1u);
  EXPECT_EQ(graph_.FindDevice("gpu1"), gpu1_);
  EXPECT_EQ(graph_.FindDevice("gpu2"), std::nullopt);
}

TEST_F(FabricGraphTest, SharedNvSwitchesAreThoseCabledToBothGpus) {
  graph_.AddCable(gpu0_, nvswitch1_, nvlink_);
  graph_.AddCable(gpu0_, nvswitch0_, nvlink_);
  graph_.AddCable(gpu0_, nic0_, host_);
  EXPECT_THAT(graph_.SharedNvSwitches(gpu0_, gpu1_), IsEmpty());
  graph_.AddCable(gpu1_, nvswitch1_, nvlink_);
  EXPECT_THAT(graph_.SharedNvSwitches(gpu0_, gpu1_), ElementsAre(nvswitch1_));
  graph_.AddCable(gpu1_, nvswitch0_, nvlink_);
  EXPECT_THAT(graph_.SharedNvSwitches(gpu1_, gpu0_), ElementsAre(nvswitch0_, nvswitch1_));
  EXPECT_THAT(graph_.SharedNvSwitches(gpu0_, gpu0_), IsEmpty());
}

TEST_F(FabricGraphTest, NvlinkGoesOverNvSwitchesElseOverItsOwnCables) {
  EXPECT_THAT(graph_.NvlinkPaths(gpu0_, gpu1_), IsEmpty());
  const CableSpec direct = {.tier = Tier::kNvlink, .rate_bps = 400'000'000'000, .lanes = 2};
  graph_.AddCable(gpu0_, gpu1_, direct);
  graph_.AddCable(gpu1_, gpu0_, direct);
  auto paths = graph_.NvlinkPaths(gpu0_, gpu1_);
  ASSERT_EQ(paths.size(), 2u);
  for (const auto& path : paths) {
    ASSERT_EQ(path.links.size(), 1u);
    EXPECT_EQ(graph_.link_source(path.links[0]), gpu0_);
    EXPECT_EQ(graph_.link_target(path.links[0]), gpu1_);
    EXPECT_EQ(path.lanes, 2u);
  }
  graph_.AddCable(gpu0_, nvswitch0_, nvlink_);
  graph_.AddCable(gpu1_, nvswitch0_, nvlink_);
  paths = graph_.NvlinkPaths(gpu0_, gpu1_);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].links.size(), 2u);
  EXPECT_EQ(graph_.link_target(paths[0].links[0]), nvswitch0_);
  EXPECT_THAT(graph_.NvlinkPaths(gpu0_, gpu0_), IsEmpty());
}

// NCCL's: the widest path, of those the one with the widest link into the destination.
TEST_F(FabricGraphTest, NvlinkRoutesGoOverAThirdGpuWhereNoNvlinkJoinsTwo) {
  const auto add_gpu = [&](int index) {
    return graph_.AddDevice({.name = "other" + std::to_string(index),
                             .kind = DeviceKind::kGpu,
                             .server = ServerIndex{0},
                             .local_index = 2 + index});
  };
  const DeviceId narrow = add_gpu(0);
  const DeviceId wide_first = add_gpu(1);
  const DeviceId wide_last = add_gpu(2);
  const auto join = [&](DeviceId a, DeviceId b, uint32_t lanes) {
    graph_.AddCable(a, b, {.tier = Tier::kNvlink, .rate_bps = 200'000'000'000, .lanes = lanes});
  };
  EXPECT_THAT(graph_.NvlinkRoutes(gpu0_, gpu1_), IsEmpty());
  join(gpu0_, narrow, 1);
  join(narrow, gpu1_, 1);
  EXPECT_THAT(graph_.NvlinkPaths(gpu0_, gpu1_), IsEmpty());
  const auto relay = [&](DeviceId from, DeviceId to) {
    const auto routes = graph_.NvlinkRoutes(from, to);
    EXPECT_EQ(routes.size(), 1u);
    EXPECT_EQ(routes[0].links.size(), 2u);
    EXPECT_EQ(graph_.link_source(routes[0].links[0]), from);
    EXPECT_EQ(graph_.link_target(routes[0].links[1]), to);
    return graph_.link_target(routes[0].links[0]);
  };
  EXPECT_EQ(relay(gpu0_, gpu1_), narrow);
  join(gpu0_, wide_first, 2);
  join(wide_first, gpu1_, 1);
  join(gpu0_, wide_last, 1);
  join(wide_last, gpu1_, 2);
  EXPECT_EQ(relay(gpu0_, gpu1_), wide_last);
  EXPECT_EQ(relay(gpu1_, gpu0_), wide_first);
  join(gpu0_, gpu1_, 1);
  EXPECT_EQ(graph_.NvlinkRoutes(gpu0_, gpu1_).at(0).links.size(), 1u);
}

TEST_F(FabricGraphTest, AGpuWithoutItsOwnNicSharesOne) {
  EXPECT_EQ(graph_.NicOfGpu(gpu0_), std::nullopt) << "no cable yet";
  graph_.AddCable(gpu0_, nic0_, host_);
  graph_.AddCable(gpu1_, nic0_, host_);
  EXPECT_EQ(graph_.NicOfGpu(gpu0_), nic0_);
  EXPECT_EQ(graph_.NicOfGpu(gpu1_), nic0_) << "1 modulo 1 NIC";
}

TEST_F(FabricGraphTest, AGpuUsesTheNicItIsCabledToIfNotTheOneOfItsIndex) {
  // Created before the NIC of index 0, so that their order is not that of creation.
  const DeviceId nic2 = AddInServer("nic2", DeviceKind::kNic, 2);
  const DeviceId nic1 = AddInServer("nic1", DeviceKind::kNic, 1);
  graph_.AddCable(gpu0_, nic2, host_);
  graph_.AddCable(gpu1_, nic0_, host_);
  graph_.AddCable(gpu1_, nic1, host_);
  EXPECT_EQ(graph_.NicOfGpu(gpu0_), nic2);
  EXPECT_EQ(graph_.NicOfGpu(gpu1_), nic1);
}

TEST(TierNameTest, NamesAreThoseOfTheSchema) {
  EXPECT_EQ(TierName(Tier::kNvlink), "NVLINK");
  EXPECT_EQ(TierName(Tier::kHost), "HOST");
  EXPECT_EQ(TierName(Tier::kNicLeaf), "NIC_LEAF");
  EXPECT_EQ(TierName(Tier::kLeafSpine), "LEAF_SPINE");
  EXPECT_EQ(TierName(Tier::kSpineCore), "SPINE_CORE");
  EXPECT_EQ(TierName(Tier::kDirect), "DIRECT");
  EXPECT_EQ(TierName(Tier::kLocal), "LOCAL");
  EXPECT_EQ(TierName(Tier::kGlobal), "GLOBAL");
}

TEST(DeviceKindNameTest, NamesAreThoseOfTheSchema) {
  EXPECT_EQ(DeviceKindName(DeviceKind::kGpu), "GPU");
  EXPECT_EQ(DeviceKindName(DeviceKind::kNvSwitch), "NVSWITCH");
  EXPECT_EQ(DeviceKindName(DeviceKind::kNic), "NIC");
  EXPECT_EQ(DeviceKindName(DeviceKind::kSwitch), "SWITCH");
}

TEST(FabricGraphDeathTest, TwoDevicesOfOneNameAreAProgramError) {
  FabricGraph graph;
  graph.AddDevice({.name = "leaf"});
  EXPECT_DEATH(graph.AddDevice({.name = "leaf"}), "there are two devices leaf");
}

}  // namespace
}  // namespace railyard
