// SPDX-License-Identifier: GPL-2.0-only
// Expected values: the tables NCCL 2.30.7's own tuning code prints for a DGX H100 topology (Intel
// CPU, 400 Gb/s NICs), and the sizes at which its choice changes.
#include "workloads/nccl/nccl_tuner.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kVersion = 23007;
constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

NcclTuner DgxH100(uint32_t nodes, uint32_t version = kVersion) {
  TunerPlatform platform;
  platform.generation = GpuGeneration::kHopper;
  if (nodes == 1) {
    platform.ring = platform.tree = {12, 30, 30};
    platform.nvls = {8, 40, 60};
    platform.same_rings = true;
    return NcclTuner(platform, {8, 1, 24}, version);
  }
  platform.ring = platform.tree = {8, 48, 48};
  platform.nvls = {8, 40, 48};
  platform.tree_meets_nic_on_one = true;
  return NcclTuner(platform, {8 * nodes, nodes, 16}, version);
}

NcclTuner OneGpuPerNode(uint32_t nodes, uint32_t version = kVersion) {
  TunerPlatform platform;
  platform.generation = GpuGeneration::kHopper;
  platform.ring = platform.tree = {2, 24, 24};
  platform.same_rings = true;
  platform.tree_meets_nic_on_one = true;
  return NcclTuner(platform, {nodes, nodes, 4}, version);
}

void ExpectModel(const NcclTuner& tuner, CollectiveKind kind, Algorithm algorithm,
                 Protocol protocol, double latency_us, double gb_per_s) {
  SCOPED_TRACE(std::string(AlgorithmName(algorithm)) + "/" + std::string(ProtocolName(protocol)));
  const NcclTuner::Model model = tuner.ModelOf(kind, algorithm, protocol);
  EXPECT_NEAR(model.latency_us, latency_us, 0.051);
  EXPECT_NEAR(model.gb_per_s, gb_per_s, 0.051);
}

// The sizes, among powers of two from 8 B to 8 GiB, from which on another pair is chosen.
struct Change {
  uint64_t bytes;
  Algorithm algorithm;
  Protocol protocol;
  friend bool operator==(const Change&, const Change&) = default;
  friend void PrintTo(const Change& change, std::ostream* out) {
    *out << change.bytes << " B: " << AlgorithmName(change.algorithm) << "/"
         << ProtocolName(change.protocol);
  }
};
std::vector<Change> ChangesOf(const NcclTuner& tuner, CollectiveKind kind) {
  std::vector<Change> changes;
  for (uint64_t bytes = 8; bytes <= 8 * kGiB; bytes *= 2) {
    const auto choice =
        tuner.Choose({kind, bytes, Datatype::kFloat32}, Algorithm::kUnstated, Protocol::kUnstated);
    if (!choice) return {};
    if (changes.empty() || changes.back().algorithm != choice->algorithm ||
        changes.back().protocol != choice->protocol) {
      changes.push_back({bytes, choice->algorithm, choice->protocol});
    }
  }
  return changes;
}

constexpr auto kTree = Algorithm::kTree;
constexpr auto kRing = Algorithm::kRing;
constexpr auto kNvls = Algorithm::kNvls;
constexpr auto kNvlsTree = Algorithm::kNvlsTree;
constexpr auto kLl = Protocol::kLl;
constexpr auto kLl128 = Protocol::kLl128;
constexpr auto kSimple = Protocol::kSimple;
constexpr auto kAllReduce = CollectiveKind::kAllReduce;
constexpr auto kAllGather = CollectiveKind::kAllGather;
constexpr auto kReduceScatter = CollectiveKind::kReduceScatter;
constexpr auto kBroadcast = CollectiveKind::kBroadcast;

TEST(NcclTuner, HasNcclsTableForTwoServersOfEightH100) {
  const NcclTuner tuner = DgxH100(2);
  ExpectModel(tuner, kAllReduce, kTree, kLl, 25.2, 16.58);
  ExpectModel(tuner, kAllReduce, kTree, kLl128, 48.5, 124.78);
  ExpectModel(tuner, kAllReduce, kTree, kSimple, 92.4, 140.76);
  ExpectModel(tuner, kAllReduce, kRing, kLl, 40, 20.8);
  ExpectModel(tuner, kAllReduce, kRing, kLl128, 75.2, 156.59);
  ExpectModel(tuner, kAllReduce, kRing, kSimple, 131.6, 204.8);
  ExpectModel(tuner, kAllReduce, kNvlsTree, kSimple, 66.8, 246.19);
  ExpectModel(tuner, kAllGather, kRing, kLl, 23.3, 41.6);
  ExpectModel(tuner, kAllGather, kRing, kLl128, 44.6, 313.17);
  ExpectModel(tuner, kAllGather, kRing, kSimple, 70, 409.6);
}

// 75 us for each step between servers and, with Simple, for its flush: two of a tree's and of a
// ring's steps on two servers, one of AllGather's.
TEST(NcclTuner, AddsWhatAPlugInSaysOfItsNics) {
  TunerPlatform platform;
  platform.ring = platform.tree = {8, 48, 48};
  platform.nvls = {8, 40, 48};
  platform.tree_meets_nic_on_one = true;
  platform.net_latency_us = 75;
  const NcclTuner tuner(platform, {16, 2, 16}, kVersion);
  ExpectModel(tuner, kAllReduce, kTree, kLl, 25.2 + 150, 16.58);
  ExpectModel(tuner, kAllReduce, kTree, kSimple, 92.4 + 300, 140.76);
  ExpectModel(tuner, kAllReduce, kRing, kLl128, 75.2 + 150, 156.59);
  ExpectModel(tuner, kAllReduce, kRing, kSimple, 131.6 + 300, 204.8);
  ExpectModel(tuner, kAllReduce, kNvlsTree, kSimple, 66.8 + 300, 246.19);
  ExpectModel(tuner, kAllGather, kRing, kLl, 23.3 + 75, 41.6);
  // NCCL leaves it out for Broadcast.
  ExpectModel(tuner, kBroadcast, kRing, kLl, DgxH100(2).ModelOf(kBroadcast, kRing, kLl).latency_us,
              DgxH100(2).ModelOf(kBroadcast, kRing, kLl).gb_per_s);
}

TEST(NcclTuner, HasNcclsTableForOneServerOfEightH100) {
  const NcclTuner tuner = DgxH100(1);
  ExpectModel(tuner, kAllReduce, kRing, kLl, 15, 80.57);
  ExpectModel(tuner, kAllReduce, kRing, kLl128, 40.6, 189.26);
  ExpectModel(tuner, kAllReduce, kRing, kSimple, 56, 205.71);
  ExpectModel(tuner, kAllReduce, kTree, kLl, 15.2, 43.58);
  ExpectModel(tuner, kAllReduce, kTree, kLl128, 31.5, 128.8);
  ExpectModel(tuner, kAllReduce, kTree, kSimple, 64.4, 165.6);
  ExpectModel(tuner, kAllReduce, kNvls, kSimple, 25, 272);
}

TEST(NcclTuner, ChoosesForAllReduceAsNcclDoes) {
  EXPECT_THAT(ChangesOf(DgxH100(1), kAllReduce),
              ElementsAre(Change{8, kRing, kLl}, Change{2 * kMiB, kNvls, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(2), kAllReduce),
              ElementsAre(Change{8, kTree, kLl}, Change{256 * kKiB, kTree, kLl128},
                          Change{2 * kMiB, kNvlsTree, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(4), kAllReduce),
              ElementsAre(Change{8, kTree, kLl}, Change{256 * kKiB, kTree, kLl128},
                          Change{8 * kMiB, kNvlsTree, kSimple}, Change{kGiB, kRing, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(16), kAllReduce),
              ElementsAre(Change{8, kTree, kLl}, Change{256 * kKiB, kTree, kLl128},
                          Change{16 * kMiB, kNvlsTree, kSimple}, Change{8 * kGiB, kRing, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(128), kAllReduce),
              ElementsAre(Change{8, kTree, kLl}, Change{256 * kKiB, kTree, kLl128},
                          Change{32 * kMiB, kNvlsTree, kSimple}));
  EXPECT_THAT(ChangesOf(OneGpuPerNode(4), kAllReduce),
              ElementsAre(Change{8, kTree, kLl}, Change{64 * kKiB, kRing, kLl},
                          Change{kMiB, kRing, kLl128}, Change{32 * kMiB, kRing, kSimple}));
}

TEST(NcclTuner, ChoosesForAllGatherAndReduceScatterAsNcclDoes) {
  const std::vector<std::pair<uint32_t, std::pair<uint64_t, uint64_t>>> cells = {
      {1, {8 * kMiB, 32 * kMiB}},   {2, {kMiB, 64 * kMiB}},       {4, {kMiB, 128 * kMiB}},
      {16, {4 * kMiB, 512 * kMiB}}, {128, {32 * kMiB, 4 * kGiB}},
  };
  for (const auto& [nodes, sizes] : cells) {
    for (const CollectiveKind kind : {kAllGather, kReduceScatter}) {
      EXPECT_THAT(ChangesOf(DgxH100(nodes), kind),
                  ElementsAre(Change{8, kRing, kLl}, Change{sizes.first, kRing, kLl128},
                              Change{sizes.second, kRing, kSimple}))
          << nodes << " servers";
    }
  }
  EXPECT_THAT(ChangesOf(OneGpuPerNode(4), kAllGather),
              ElementsAre(Change{8, kRing, kLl}, Change{kMiB, Algorithm::kPat, kSimple},
                          Change{2 * kMiB, kRing, kLl128}, Change{8 * kMiB, kRing, kSimple}));
}

// 16 rings of 45 GB/s: LL expects 10.8 us and 282 x 8/7 GB/s, LL128 27.3 us and 0.92 x 720 x 8/7,
// from 2.29 on 16 x 40 x 8/7, Simple 32.2 us and 720 x 8/7. LL128 is faster than LL from 9.3 and
// 9.5 MB on, Simple than LL128 from 46 and 32.2 MB on.
TEST(NcclTuner, BlackwellsCapOnLl128IsThatOfTheVersion) {
  TunerPlatform platform;
  platform.generation = GpuGeneration::kBlackwell;
  platform.ring = platform.tree = {16, 45, 45};
  platform.nvls = {8, 80, 120};
  platform.same_rings = true;
  const auto simple_from = [&](uint32_t version) {
    const auto changes = ChangesOf(NcclTuner(platform, {8, 1, 32}, version), kReduceScatter);
    EXPECT_THAT(changes, testing::SizeIs(3));
    EXPECT_EQ(changes[1], (Change{16 * kMiB, kRing, kLl128}));
    EXPECT_EQ(changes[2].protocol, kSimple);
    return changes[2].bytes;
  };
  EXPECT_EQ(simple_from(22501), 64 * kMiB);
  EXPECT_EQ(simple_from(22705), 64 * kMiB);
  EXPECT_EQ(simple_from(22809), 64 * kMiB);
  EXPECT_EQ(simple_from(22907), 32 * kMiB);
  EXPECT_EQ(simple_from(23007), 32 * kMiB);
}

TEST(NcclTuner, ChoosesForBroadcastAsNcclDoes) {
  EXPECT_THAT(ChangesOf(DgxH100(1), kBroadcast),
              ElementsAre(Change{8, kRing, kLl}, Change{2 * kMiB, kRing, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(2), kBroadcast),
              ElementsAre(Change{8, kRing, kLl}, Change{2 * kMiB, kRing, kLl128},
                          Change{256 * kMiB, kRing, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(16), kBroadcast),
              ElementsAre(Change{8, kRing, kLl}, Change{4 * kMiB, kRing, kLl128},
                          Change{2 * kGiB, kRing, kSimple}));
  EXPECT_THAT(ChangesOf(DgxH100(128), kBroadcast),
              ElementsAre(Change{8, kRing, kLl}, Change{32 * kMiB, kRing, kLl128}));
}

TEST(NcclTuner, KeepsToTheAlgorithmAndProtocolAsked) {
  const NcclTuner tuner = DgxH100(2);
  const auto tree =
      tuner.Choose({kAllReduce, kGiB, Datatype::kFloat32}, kTree, Protocol::kUnstated);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->algorithm, kTree);
  const auto ll = tuner.Choose({kAllReduce, kGiB, Datatype::kFloat32}, Algorithm::kUnstated, kLl);
  ASSERT_TRUE(ll);
  EXPECT_EQ(ll->protocol, kLl);
  // NVLS has no LL, and no NVLS crosses servers without CollNet.
  EXPECT_FALSE(tuner.Choose({kAllReduce, kGiB, Datatype::kFloat32}, kNvlsTree, kLl));
  EXPECT_FALSE(tuner.Choose({kAllReduce, kGiB, Datatype::kFloat32}, kNvls, kSimple));
}

// src/graph/tuning.cc by hand, 2 and 4 x 8 H100: 8 channels of 48 GB/s.
TEST(NcclTuner, KnowsCollNetWhereItIsEnabled) {
  TunerPlatform platform;
  platform.ring = platform.tree = {8, 48, 48};
  platform.nvls = {8, 40, 48};
  platform.tree_meets_nic_on_one = true;
  platform.collnet = platform.tree;
  const NcclTuner tuner(platform, {32, 4, 16}, kVersion);
  const auto expect = [&](Algorithm algorithm, double latency_us, double gb_per_s) {
    EXPECT_NEAR(tuner.ModelOf(kAllReduce, algorithm, kSimple).latency_us, latency_us, 1e-9);
    EXPECT_NEAR(tuner.ModelOf(kAllReduce, algorithm, kSimple).gb_per_s, gb_per_s, 1e-9);
  };
  expect(Algorithm::kCollnetDirect, 2 * (3.7 + 7 * 0.4) + 31, 384 * 0.85 / 2);
  expect(Algorithm::kCollnetChain, 2 * 7 * 2.8 + 30, 384 / 2.0);
  expect(kNvls, 25 + 18, 384 * 32 / 62.0);
  // A rail's NIC for every GPU, at 0.9.
  for (const CollectiveKind kind : {kAllGather, CollectiveKind::kReduceScatter}) {
    const NcclTuner::Model model = tuner.ModelOf(kind, Algorithm::kCollnetDirect, kSimple);
    EXPECT_NEAR(model.gb_per_s, 8 * 0.9 * 48, 1e-9);
    EXPECT_NEAR(model.latency_us, 2 * (3.7 + 7 * 0.4) + 31, 1e-9);
    EXPECT_EQ(tuner.ModelOf(kind, Algorithm::kCollnetChain, kSimple).gb_per_s, 0);
  }
  // Before 2.27 (2.26.2, say) 0.95 of it, 0.85 with eight.
  for (const auto& [gpus, share] :
       {std::pair(8u, 0.85), std::pair(4u, 0.95), std::pair(1u, 0.95)}) {
    const NcclTuner older(platform, {4 * gpus, 4, 16}, 22602);
    EXPECT_NEAR(older.ModelOf(kAllGather, Algorithm::kCollnetDirect, kSimple).gb_per_s,
                gpus * share * 48, 1e-9);
  }
  EXPECT_EQ(tuner.ModelOf(kAllReduce, Algorithm::kCollnetChain, kLl).gb_per_s, 0);
  // Half of what rings have to carry: CollNet is taken from some size on.
  const auto choice =
      tuner.Choose({kAllReduce, kGiB, Datatype::kFloat32}, Algorithm::kUnstated, kSimple);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->algorithm, kNvls);
  EXPECT_EQ(DgxH100(4).ModelOf(kAllReduce, Algorithm::kCollnetChain, kSimple).gb_per_s, 0);
}

TEST(NcclTuner, FallsBackWhereTheSwitchCannotReduce) {
  TunedCall call{kAllReduce, kGiB, Datatype::kFloat64};
  call.nvls_reduces = false;
  const auto choice = DgxH100(1).Choose(call, Algorithm::kUnstated, Protocol::kUnstated);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->algorithm, kRing);
  EXPECT_EQ(choice->protocol, kSimple);
}

TEST(NcclTuner, AvoidsLongChainsOfAdditionsInEightBits) {
  const TunedCall call{kAllReduce, 8 * kGiB, Datatype::kFloat8E4M3};
  const NcclTuner tuner = DgxH100(16);
  EXPECT_DOUBLE_EQ(
      tuner.TimeUs(call, kRing, kSimple).value(),
      1024 * tuner.TimeUs({kAllReduce, 8 * kGiB, Datatype::kFloat16}, kRing, kSimple).value());
}

TEST(NcclTuner, HasTheTablesOfEarlierVersions) {
  // Tree Simple: no base and 28 us per step, 2 x (7 + 1) x 28.
  EXPECT_NEAR(DgxH100(2, 22105).ModelOf(kAllReduce, kTree, kSimple).latency_us, 448, 1e-9);
  // NVLS: min(40, 60) x 8 x 5/6; 23 us up to 2.20.
  EXPECT_NEAR(DgxH100(1, 22005).ModelOf(kAllReduce, kNvls, kSimple).latency_us, 23, 1e-9);
  EXPECT_NEAR(DgxH100(1, 22707).ModelOf(kAllReduce, kNvls, kSimple).gb_per_s, 320 * 5 / 6.0, 1e-9);
  // NVLSTree: half the NICs' bandwidth beyond two nodes, 14 us per level.
  EXPECT_NEAR(DgxH100(4, 22707).ModelOf(kAllReduce, kNvlsTree, kSimple).gb_per_s, 8 * 24 * 5 / 6.0,
              1e-9);
  EXPECT_NEAR(DgxH100(4, 22707).ModelOf(kAllReduce, kNvlsTree, kSimple).latency_us, 25 + 4 * 14,
              1e-9);
  // Ring LL on one Hopper node: 87.7 up to 2.20.
  EXPECT_NEAR(DgxH100(1, 22005).ModelOf(kAllReduce, kRing, kLl).gb_per_s, 87.7 * 8 / 14, 1e-9);
  // PAT came with 2.23; here only its absence where a node has eight ranks.
  EXPECT_EQ(DgxH100(2).ModelOf(kAllGather, Algorithm::kPat, kSimple).gb_per_s, 0);
}

// Trees with Simple: 2 x (7 x 4 + 14) with a base of 8.4 from 2.23 on, and without in 2.18. Two
// nodes count as four steps between nodes of a ring up to 2.22: 26 x 3.4 + 4 x 14 after 8.4.
TEST(NcclTuner, HasTheLatenciesOfEarlierVersions) {
  const auto latency_us = [](uint32_t version, Algorithm algorithm) {
    return DgxH100(2, version).ModelOf(kAllReduce, algorithm, kSimple).latency_us;
  };
  EXPECT_NEAR(latency_us(21803, kTree), 84, 1e-9);
  EXPECT_NEAR(latency_us(22203, kTree), 448, 1e-9);
  EXPECT_NEAR(latency_us(22304, kTree), 92.4, 1e-9);
  EXPECT_NEAR(latency_us(22203, kRing), 152.8, 1e-9);
  EXPECT_NEAR(latency_us(22304, kRing), 131.6, 1e-9);
  // NVLSTree: 23 us and 19 for each way in 2.18, 14 from 2.19 on.
  EXPECT_NEAR(latency_us(21803, kNvlsTree), 61, 1e-9);
  EXPECT_NEAR(latency_us(21903, kNvlsTree), 51, 1e-9);
  EXPECT_NEAR(DgxH100(2, 21803).ModelOf(kAllReduce, kNvlsTree, kSimple).gb_per_s, 8 * 40 * 0.7,
              1e-9);
  EXPECT_NEAR(DgxH100(4, 21803).ModelOf(kAllReduce, kNvlsTree, kSimple).gb_per_s,
              8 * 48 * 0.7 * 4 / 6, 1e-9);
}

// Rings of one GPU per node: a quarter of 48 GB/s with LL up to 2.20, and 0.7 with LL128 up
// to 2.22, whose steps between nodes are not yet those of trees.
TEST(NcclTuner, HasTheRingsOfEarlierVersions) {
  const auto model = [](uint32_t version, Protocol protocol) {
    return OneGpuPerNode(2, version).ModelOf(kAllReduce, kRing, protocol);
  };
  EXPECT_NEAR(model(22003, kLl).gb_per_s, 12, 1e-9);
  EXPECT_NEAR(model(22105, kLl).gb_per_s, 24, 1e-9);
  EXPECT_NEAR(model(22203, Protocol::kLl128).gb_per_s, 0.7 * 48, 1e-9);
  EXPECT_NEAR(model(22304, Protocol::kLl128).gb_per_s, 0.92 * 48, 1e-9);
  EXPECT_NEAR(model(22304, kLl).latency_us, 6.6 + 2 * 5.0, 1e-9);
}

// Two p4de with a plug-in that states 75 us: 2 x (7 x 28 + 28 + 150) for a tree with Simple and
// 8.4 + 26 x 3.4 + 4 x 164 for a ring.
TEST(NcclTuner, PrefersTreesToRingsOverSlowNicsInEarlierVersions) {
  TunerPlatform platform;
  platform.generation = GpuGeneration::kAmpere;
  platform.ring = {4, 12, 12};
  platform.tree = {4, 24, 12};
  platform.net_latency_us = 75;
  const NcclTuner tuner(platform, {16, 2, 8}, 22003);
  EXPECT_NEAR(tuner.ModelOf(kAllReduce, kTree, kSimple).latency_us, 748, 1e-9);
  EXPECT_NEAR(tuner.ModelOf(kAllReduce, kRing, kSimple).latency_us, 752.8, 1e-9);
  const auto choice =
      tuner.Choose({kAllReduce, 8, Datatype::kFloat32}, Algorithm::kUnstated, kSimple);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->algorithm, kTree);
}

TEST(NcclTuner, CountsTheOverheadOfAnAmdCpu) {
  TunerPlatform platform;
  platform.ring = platform.tree = {8, 48, 48};
  platform.cpu = CommunicatorCpu::kAmd;
  const NcclTuner tuner(platform, {16, 2, 16}, kVersion);
  // 28 steps of 2 us instead of 1 us, 2 steps over the network; Ampere's row caps LL at 22.5.
  ExpectModel(tuner, kAllReduce, kRing, kLl, 6.6 + 28 * 2 + 2 * 2.7, 22.5 * 16 / 30);
  // Three times as much with Simple, above NVLink's 3.4 us.
  EXPECT_NEAR(tuner.ModelOf(kAllReduce, kRing, kSimple).latency_us, 8.4 + 28 * 6 + 2 * 14, 1e-9);
}

// 2 and 4 x 8 GPUs; llMaxBws' rows Volta and Ampere for two nodes and for more.
TEST(NcclTuner, TakesTheRowOfLlByTheCpu) {
  const struct {
    CommunicatorCpu cpu;
    double two_nodes;
    double four_nodes;
    double step_us;
  } cases[] = {{CommunicatorCpu::kIntel, 39, 20.4, 1},
               {CommunicatorCpu::kAmd, 22.5, 19, 2},
               {CommunicatorCpu::kArm, 39, 20.4, 1},
               {CommunicatorCpu::kMixed, 22.5, 19, 1}};
  for (const auto& c : cases) {
    TunerPlatform platform;
    platform.ring = platform.tree = {8, 48, 48};
    platform.cpu = c.cpu;
    ExpectModel(NcclTuner(platform, {16, 2, 16}, kVersion), kAllReduce, kRing, kLl,
                6.6 + 28 * c.step_us + 2 * 2.7, c.two_nodes * 16 / 30);
    ExpectModel(NcclTuner(platform, {32, 4, 16}, kVersion), kAllReduce, kRing, kLl,
                6.6 + 56 * c.step_us + 6 * 2.7, c.four_nodes * 32 / 62);
    // In one server the GPU's row, and no overhead.
    platform.ring = platform.tree = {12, 30, 30};
    ExpectModel(NcclTuner(platform, {8, 1, 24}, kVersion), kAllReduce, kRing, kLl, 6.6 + 14 * 0.6,
                141.0 * 8 / 14);
  }
}

TEST(NcclTuner, HasNoLl128OverPcie) {
  TunerPlatform platform;
  platform.generation = GpuGeneration::kAmpere;
  platform.nvlink = false;
  platform.ring = platform.tree = {1, 12, 12};
  const NcclTuner tuner(platform, {8, 1, 2}, kVersion);
  EXPECT_EQ(tuner.ModelOf(kAllReduce, kRing, kLl128).gb_per_s, 0);
  // 14 steps of PCIe's 5.7 us.
  EXPECT_NEAR(tuner.ModelOf(kAllReduce, kRing, kSimple).latency_us, 8.4 + 14 * 5.7, 1e-9);
}

NcclTuner DgxB200(uint32_t version, CommunicatorCpu cpu = CommunicatorCpu::kIntel,
                  uint32_t nodes = 1) {
  TunerPlatform platform;
  platform.generation = GpuGeneration::kBlackwell;
  platform.cpu = cpu;
  if (nodes == 1) {
    platform.ring = platform.tree = {16, 45, 45};
    return NcclTuner(platform, {8, 1, 32}, version);
  }
  platform.ring = {8, 48, 48};
  platform.tree = {8, 96, 48};
  platform.nvls = {8, 80, 48};
  return NcclTuner(platform, {8 * nodes, nodes, 16}, version);
}

// ncclTuningRingModelSim (src/tuning/ring.cc, 2.32.3): the latency of 8.4 + 7 x 3.4 us becomes 1 +
// (1 - 0.25^6) x 0.4 times as long, x 0.3 from 512 KiB for each rank and channel on.
TEST(NcclTunerTest, From232OnRingsOfABlackwellServerHaveAPlateau) {
  const auto time_us = [](uint32_t version, uint64_t bytes) {
    return DgxB200(version)
        .TimeUs({CollectiveKind::kAllGather, bytes}, Algorithm::kRing, Protocol::kSimple)
        .value();
  };
  const double all = 1 - 1.0 / 4096;
  EXPECT_NEAR(time_us(23203, 64 * kMiB) - time_us(23007, 64 * kMiB), 32.2 * 0.4 * all, 1e-6);
  EXPECT_NEAR(time_us(23203, 128 * kMiB) - time_us(23007, 128 * kMiB), 32.2 * 0.3 * all, 1e-6);
  EXPECT_NEAR(time_us(23203, 96 * kMiB) - time_us(23007, 96 * kMiB), 32.2 * 0.35 * all, 1e-6);
  EXPECT_EQ(time_us(23203, 8 * kKiB), time_us(23007, 8 * kKiB));  // 32 B for each
}

// src/tuning/tree.cc, 2.32: the slower of 48 and 96 GB/s counts on two nodes too, 0.92 and 0.85 of
// it; the cap of 42.8 GB/s for each of eight channels was less than 96 before.
TEST(NcclTunerTest, From232OnNicsLimitTreesOfTwoBlackwellServers) {
  const auto gb_per_s = [](uint32_t version) {
    return DgxB200(version, CommunicatorCpu::kIntel, 2)
        .ModelOf(CollectiveKind::kAllReduce, Algorithm::kTree, Protocol::kLl)
        .gb_per_s;
  };
  EXPECT_NEAR(gb_per_s(23007), std::min(8 * 42.8 / 3.8, 39.0) / 2, 1e-6);
  EXPECT_NEAR(gb_per_s(23203), std::min(0.92 * 8 * 48 / 3.8, 39.0) / 2, 1e-6);
  const auto simple = [](uint32_t version) {
    return DgxB200(version, CommunicatorCpu::kIntel, 4)
        .ModelOf(CollectiveKind::kAllReduce, Algorithm::kTree, Protocol::kSimple)
        .gb_per_s;
  };
  EXPECT_EQ(simple(23007), simple(23203));
}

// ncclTopoGetAlgoTime, 2.30: NVLSTree has the tree's correction on Blackwell with x86 CPUs, 0.7 at
// 4 MiB, where bytes take 1 / 0.7 times as long.
TEST(NcclTunerTest, From230OnTreesOfNvlsAreCorrectedOnBlackwell) {
  const auto bytes_us = [](uint32_t version, CommunicatorCpu cpu) {
    const NcclTuner tuner = DgxB200(version, cpu, 2);
    const auto kind = CollectiveKind::kAllReduce;
    return tuner.TimeUs({kind, 4 * kMiB}, Algorithm::kNvlsTree, Protocol::kSimple).value() -
           tuner.ModelOf(kind, Algorithm::kNvlsTree, Protocol::kSimple).latency_us;
  };
  const double plain = bytes_us(22907, CommunicatorCpu::kIntel);
  EXPECT_NEAR(bytes_us(23007, CommunicatorCpu::kIntel), plain / 0.7, 1e-6);
  EXPECT_NEAR(bytes_us(23007, CommunicatorCpu::kArm), plain, 1e-6);
}

}  // namespace
}  // namespace railyard
