// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/fabric_measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/dual_tor.h"
#include "topologies/generators/fat_tree.h"
#include "topologies/generators/hyperx.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/generators/torus.h"
#include "topologies/measures/network_flow.h"
#include "topologies/platforms/preset.h"
#include "topologies/routing/hop_counts.h"

namespace railyard {
namespace {

constexpr uint64_t kNicBps = 400'000'000'000;

NetworkSpec Hosts(uint32_t count) {
  return {.servers = {{.count = count, .gpus = 1, .nvlink_lanes = {}}}};
}

TEST(BisectionTest, AFatTreePassesWhatHalfItsHostsSend) {
  for (const uint32_t k : {4u, 6u, 8u}) {
    const FabricGraph fabric = MakeFatTree({.network = Hosts(k * k * k / 4), .radix = k});
    EXPECT_EQ(BisectionBps(fabric), k * k * k / 8 * kNicBps);
  }
}

TEST(BisectionTest, OversubscriptionDividesIt) {
  const FabricGraph fabric =
      MakeFatTree({.network = Hosts(64), .radix = 12, .tiers = 2, .oversubscription = 3});
  // Leaves of 9 NICs: 32 hosts are on 3.6 leaves of 3 uplinks. Three whole leaves send 9, and the
  // leaf on both sides passes 5 hosts' 3 uplinks at most, or its own 4 hosts of the other half.
  EXPECT_LE(BisectionBps(fabric), (3 * 3 + 5) * kNicBps);
  EXPECT_GE(BisectionBps(fabric), (3 * 3 + 4) * kNicBps);
}

// A cut across a ring of k takes two cables of each of the N/k rings: 2N/k (Dally, Towles:
// "Principles and practices of interconnection networks", section 5.2.1). NICs can send more.
TEST(BisectionTest, ATorusIsCutAcrossItsFirstDimension) {
  EXPECT_EQ(BisectionBps(MakeTorus({.network = Hosts(64), .dimensions = {8, 8}})), 16 * kNicBps);
  EXPECT_EQ(BisectionBps(MakeTorus({.network = Hosts(64), .dimensions = {4, 4, 4}})), 32 * kNicBps);
}

TEST(BisectionTest, RailsWithoutSpinesCarryAsMuchWhereAllMayRelay) {
  EXPECT_EQ(BisectionBps(MakeRailOptimized({.servers = 4, .spines = 0})), 16 * kNicBps);
  EXPECT_EQ(BisectionBps(MakeRailOptimized({.servers = 4})), 16 * kNicBps);
}

// The other way: between all GPUs, with every device a node of its own.
TEST(BisectionTest, ByClassesItIsThatOfAllNodes) {
  for (const char* preset :
       {"h100-8x8-jellyfish", "h100-9x8-dragonfly", "h100-10x8-dragonfly-plus", "h800-8x8-dual-tor",
        "mixed-h100-a100-rail-optimized", "h100-24x8-fat-tree-2to1", "h100-16x8-hyperx",
        "h100-8x8-direct-connect", "torus-3d-4x4x4"}) {
    const FabricGraph fabric = MakePreset(preset).value();
    std::vector<DeviceId> halves[2];
    for (const DeviceId gpu : fabric.gpus()) {
      const ServerIndex server = fabric.device(gpu).server;
      halves[server < fabric.server_count() / 2 ? 0 : 1].push_back(gpu);
    }
    EXPECT_EQ(BisectionBps(fabric), MaxFlowBetweenGpusBps(fabric, halves[0], halves[1])) << preset;
  }
}

TEST(BisectionTest, ARegularFabricHasFewClasses) {
  const MaxFlow torus = Bisection(MakeTorus({.network = Hosts(512), .dimensions = {8, 8, 8}}));
  EXPECT_EQ(torus.bps, 2 * (64 * kNicBps));
  EXPECT_EQ(torus.nodes, 2u + 512 + 512);  // routers, NICs, the two sides
  EXPECT_LT(torus.classes, 20u);
}

TEST(BisectionTest, BothPortsOfANicCount) {
  const FabricGraph fabric = MakeDualTor({.network = {.servers = {{.count = 2,
                                                                   .host_rate_bps = 4 * kNicBps,
                                                                   .nic_rate_bps = kNicBps}}},
                                          .servers_per_segment = 2,
                                          .aggs_per_plane = 1});
  EXPECT_EQ(BisectionBps(fabric), 8 * (2 * kNicBps));
}

TEST(BisectionTest, OneServerIsCutThroughItsIsland) {
  // 4 GPUs of 18 NVLinks of 25 GB/s, and their NICs over the leaves' one spine: 450 + 50 GB/s each.
  EXPECT_EQ(BisectionBps(MakeRailOptimized({.servers = 1})), 4 * (18 * 200'000'000'000 + kNicBps));
  EXPECT_EQ(BisectionBps(MakeRailOptimized({.servers = 1, .gpus_per_server = 1})), 0u);
}

TEST(MaxFlowTest, NamedServersAreLimitedByTheirOwnNics) {
  const FabricGraph fabric = MakeRailOptimized({.servers = 4});
  EXPECT_EQ(MaxFlowBps(fabric, {ServerIndex{0}}, {ServerIndex{1}}), 8 * kNicBps);
  EXPECT_EQ(MaxFlowBps(fabric, {ServerIndex{0}, ServerIndex{1}, ServerIndex{2}}, {ServerIndex{3}}),
            8 * kNicBps);
}

TEST(EdgeConnectivityTest, AGpuIsPartedByCuttingItsOwnCables) {
  const FabricGraph fabric = MakeRailOptimized({.servers = 4});
  // Four NVLink cables and one to the NIC.
  EXPECT_EQ(EdgeConnectivity(fabric, fabric.gpus()[0], fabric.gpus()[31]), 5u);
  const FabricGraph torus = MakeTorus({.network = Hosts(16), .dimensions = {4, 4}});
  EXPECT_EQ(EdgeConnectivity(torus, torus.gpus()[0], torus.gpus()[5]), 1u);
}

TEST(HopCountsTest, GpusRelayOverNvlink) {
  // GPU, NIC, leaf, NIC, GPU; another rail: NVSwitch and a GPU of either server more.
  const FabricGraph rail_only = MakeRailOptimized({.servers = 4, .spines = 0});
  const HopCounts hops = CountHops(rail_only, rail_only.gpus());
  EXPECT_EQ(hops.diameter, 4 + 2u);
  EXPECT_EQ(hops.unreached_pairs, 0u);
  EXPECT_EQ(hops.reached_pairs, 32 * 31u);
  // 7 in the server by 2 links; in each of 3 others 1 by 4, 7 by 6.
  EXPECT_EQ(hops.hops_sum, 32 * (7 * 2 + 3 * (4 + 7 * 6u)));
}

TEST(HopCountsTest, MoreSourcesThanBitsAreCounted) {
  const FabricGraph fabric = MakeTorus({.network = Hosts(81), .dimensions = {9, 9}});
  const HopCounts hops = CountHops(fabric, fabric.gpus());
  EXPECT_EQ(hops.diameter, 8 + 4u);
  EXPECT_EQ(hops.reached_pairs, 81 * 80u);
  // Mean distance per dimension of an odd ring of k: (k² - 1) / 4k, over all pairs, itself
  // included.
  EXPECT_EQ(hops.hops_sum, 81 * (81 * 2 * (81 - 1) / 36 + 80 * 4u));
}

TEST(HopCountsTest, TwoPartsDoNotReachEachOther) {
  FabricGraph fabric;
  for (int i = 0; i < 2; ++i) {
    fabric.AddDevice({.name = "gpu" + std::to_string(i),
                      .kind = DeviceKind::kGpu,
                      .server = ServerIndex{i},
                      .local_index = 0});
  }
  const HopCounts hops = CountHops(fabric, fabric.gpus());
  EXPECT_EQ(hops.unreached_pairs, 2u);
  EXPECT_NE(hops.unreached_from, hops.unreached_to);
}

TEST(SampleGpusTest, ASampleIsSpreadEvenly) {
  const FabricGraph fabric = MakeRailOptimized({.servers = 4});
  EXPECT_EQ(SampleGpus(fabric, 32), fabric.gpus());
  EXPECT_EQ(SampleGpus(fabric, 2), (std::vector{fabric.gpus()[0], fabric.gpus()[16]}));
}

TEST(FabricMeasuresTest, PartsAndCapacitiesAreCounted) {
  const FabricMeasures measures = Measure(MakeRailOptimized({.servers = 4, .spines = 2}));
  EXPECT_EQ(measures.gpus, 32u);
  EXPECT_EQ(measures.servers, 4u);
  EXPECT_EQ(measures.nvswitches, 16u);
  EXPECT_EQ(measures.nics, 32u);
  EXPECT_EQ(measures.switches, 10u);
  ASSERT_EQ(measures.tiers.size(), 4u);
  EXPECT_EQ(measures.tiers[0].lanes, 32 * 18u);
  EXPECT_EQ(measures.tiers[3].count, 16u);
  EXPECT_EQ(measures.tiers[3].capacity_bps, 16 * kNicBps);
  ASSERT_EQ(measures.radices.size(), 2u);
  EXPECT_EQ(measures.radices[0].ports, 6u);
  EXPECT_EQ(measures.radices[0].switches, 8u);
  ASSERT_EQ(measures.oversubscription.size(), 1u);
  EXPECT_DOUBLE_EQ(measures.oversubscription[0].worst, 2.0);
  EXPECT_EQ(measures.oversubscription[0].worst_switch, "leaf0");
  EXPECT_EQ(measures.paths_min, 1u);
  EXPECT_EQ(measures.paths_max, 2u);
  EXPECT_EQ(measures.edge_connectivity, 5u);
}

TEST(FabricMeasuresTest, WhereSwitchesWithNicsAreCabledAllTheirCablesCount) {
  const FabricMeasures measures =
      Measure(MakeHyperX({.network = {.servers = {{.count = 16}}}, .dimensions = {4, 4}}));
  ASSERT_EQ(measures.oversubscription.size(), 1u);
  EXPECT_THAT(measures.oversubscription[0].uppers,
              ::testing::ElementsAre(Tier::kLocal, Tier::kGlobal));
  EXPECT_DOUBLE_EQ(measures.oversubscription[0].worst, 8.0 / 6.0);
}

}  // namespace
}  // namespace railyard
