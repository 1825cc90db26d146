// SPDX-License-Identifier: GPL-2.0-only
// The schedules of NCCL's algorithms are right: every rank ends with what its collective owes it.
#include "tests/workloads/checked_schedules.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::CheckP2p;
using ::railyard::testing::Collective;
using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;
using ::railyard::testing::PlanRing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr CollectiveKind kRingKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                         CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                         CollectiveKind::kReduce};

std::string CheckRing(const NcclPlanner& planner, CollectiveKind kind, uint64_t bytes,
                      RankIndex root = {}) {
  const auto schedule = PlanRing(planner, Collective(kind, bytes, root));
  return CheckSchedule({kind, bytes, root}, static_cast<uint32_t>(planner.layout().ranks.size()),
                       [&](uint32_t) -> const CollectiveSchedule& { return *schedule; });
}

TEST(CheckSchedule, FindsTheRingSchedulesOfEveryRankCountRight) {
  for (uint32_t ranks = 1; ranks <= 64; ++ranks) {
    const NcclPlanner planner(Filled(ranks), {});
    for (const CollectiveKind kind : kRingKinds) {
      for (const uint64_t bytes : std::vector<uint64_t>{0, 1, 5, 63, 1'000, 100'003}) {
        ASSERT_EQ(CheckRing(planner, kind, bytes, RankIndex{ranks / 3}), "")
            << CollectiveKindName(kind) << " of " << bytes << " B on " << ranks << " ranks";
      }
    }
  }
}

TEST(CheckSchedule, FindsLargeRingSchedulesRight) {
  for (const uint32_t cross_nic : {0u, 1u, 2u}) {
    NcclSettings settings;
    settings.cross_nic = cross_nic;
    const NcclPlanner planner(Nodes(3, 8), settings);
    for (const CollectiveKind kind : kRingKinds) {
      ASSERT_EQ(CheckRing(planner, kind, (uint64_t{1} << 30) + 12'345, RankIndex{7}), "");
    }
  }
}

TEST(CheckSchedule, Finds1024RanksRightOnOneChannelInSeconds) {
  NcclSettings settings;
  settings.max_nchannels = 1;
  const NcclPlanner planner(Nodes(128, 8), settings);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(CheckRing(planner, CollectiveKind::kAllReduce, 64 << 20), "");
  EXPECT_EQ(CheckRing(planner, CollectiveKind::kAllGather, 1 << 20), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

// Every algorithm NCCL may choose, with every protocol it has, for the kinds it suits.
std::vector<ReplayChoice> ChoicesFor(const NcclPlanner& planner, CollectiveKind kind) {
  std::vector<ReplayChoice> choices;
  for (const ReplayChoice& choice : ReplayableChoices()) {
    if (planner.Choose(Collective(kind, 1), choice)) choices.push_back(choice);
  }
  return choices;
}

std::string CheckChoice(const NcclPlanner& planner, const ReplayChoice& choice, CollectiveKind kind,
                        uint64_t bytes, RankIndex root = {}) {
  const auto schedule = planner.Plan(Collective(kind, bytes, root), choice);
  return CheckSchedule({kind, bytes, root}, static_cast<uint32_t>(planner.layout().ranks.size()),
                       [&](uint32_t) -> const CollectiveSchedule& { return *schedule; });
}

class CheckEveryRankCount : public ::testing::TestWithParam<uint32_t> {};

TEST_P(CheckEveryRankCount, FindsEveryAlgorithmAndProtocolRight) {
  const uint32_t ranks = GetParam();
  const NcclPlanner planner(Filled(ranks), {});
  for (const CollectiveKind kind : kRingKinds) {
    for (const ReplayChoice& choice : ChoicesFor(planner, kind)) {
      for (const uint64_t bytes : std::vector<uint64_t>{0, 1, 63, 100'003, 3'000'001}) {
        if (ranks > 20 && bytes != 1 && bytes != 100'003) continue;
        ASSERT_EQ(CheckChoice(planner, choice, kind, bytes, RankIndex{ranks / 3}), "")
            << ReplayName(choice) << " " << CollectiveKindName(kind) << " of " << bytes << " B";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CheckEveryRankCount, ::testing::Range(2u, 65u));

// Covers reduction by the network's switches: CollNetDirect, CollNetChain, and NVLS over several
// servers.
TEST(CheckSchedule, FindsWhatTheNetworkAddsUpRight) {
  NcclSettings settings;
  settings.collnet_enable = true;
  for (const uint32_t nodes : {2u, 3u, 4u, 7u}) {
    for (const uint32_t gpus : {1u, 2u, 3u, 8u}) {
      const NcclPlanner planner(Nodes(nodes, gpus), settings);
      std::vector<Algorithm> checked;
      for (const ReplayChoice& choice : ChoicesFor(planner, CollectiveKind::kAllReduce)) {
        if (choice.algorithm != Algorithm::kCollnetDirect &&
            choice.algorithm != Algorithm::kCollnetChain && choice.algorithm != Algorithm::kNvls) {
          continue;
        }
        checked.push_back(choice.algorithm);
        for (const uint64_t bytes :
             std::vector<uint64_t>{0, 1, 63, 100'003, 3'000'001, 40'000'003}) {
          ASSERT_EQ(CheckChoice(planner, choice, CollectiveKind::kAllReduce, bytes), "")
              << ReplayName(choice) << " of " << bytes << " B on " << nodes << " x " << gpus;
        }
      }
      EXPECT_EQ(checked.size(), gpus == 1 ? 2u : 3u);
      // Blocks below a chunk, so several in one, and above.
      for (const CollectiveKind kind :
           {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        for (const uint64_t bytes :
             std::vector<uint64_t>{0, 1, 63, 10'007, 32'768, 100'003, 3'000'001}) {
          ASSERT_EQ(
              CheckChoice(planner, {Algorithm::kCollnetDirect, Protocol::kSimple}, kind, bytes), "")
              << CollectiveKindName(kind) << " of " << bytes << " B on " << nodes << " x " << gpus;
        }
      }
    }
  }
}

class CheckLargeCommunicators : public ::testing::TestWithParam<uint32_t> {};

TEST_P(CheckLargeCommunicators, FindsEveryAlgorithmAndProtocolRightOnOneChannel) {
  const uint32_t ranks = GetParam();
  NcclSettings settings;
  settings.max_nchannels = 1;
  settings.collnet_enable = true;
  const NcclPlanner planner(Filled(ranks), settings);
  for (const ReplayChoice& choice : ChoicesFor(planner, CollectiveKind::kAllReduce)) {
    ASSERT_EQ(CheckChoice(planner, choice, CollectiveKind::kAllReduce, 300'007), "")
        << ReplayName(choice);
  }
  // A block of its own in each message, and as many in one as NCCL puts there.
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    if (planner.layout().node_count() > 1 && ranks % 8 == 0) {
      ASSERT_EQ(CheckChoice(planner, {Algorithm::kCollnetDirect, Protocol::kSimple}, kind, 1'003),
                "");
    }
    for (const Algorithm algorithm : {Algorithm::kPat, Algorithm::kDirect}) {
      for (const uint64_t bytes : std::vector<uint64_t>{1'003, 300'007}) {
        if (bytes > 2'000 && (algorithm == Algorithm::kDirect || ranks > 257)) continue;
        ASSERT_EQ(CheckChoice(planner, {algorithm, Protocol::kSimple}, kind, bytes), "")
            << AlgorithmName(algorithm);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CheckLargeCommunicators,
                         ::testing::Values(72, 96, 127, 128, 129, 255, 256, 257, 511, 512, 1'000,
                                           1'024));

// NCCL_MAX_NVLS_ARITY (src/include/device.h): 32 heads. GPUs beyond them leave their data to the
// switches and take results, and have no slice of their own.
TEST(CheckSchedule, FindsNvlsOfIslandsWithMoreGpusThanHeadsRight) {
  for (const uint32_t islands : {1u, 2u}) {
    CommunicatorLayout layout = Nodes(islands, 40, 72);
    layout.generation = GpuGeneration::kBlackwell;
    const NcclPlanner planner(layout, {});
    const Algorithm algorithm = islands == 1 ? Algorithm::kNvls : Algorithm::kNvlsTree;
    for (const uint64_t bytes : {uint64_t{1'000}, uint64_t{10'000'019}}) {
      JobCollective collective = Collective(CollectiveKind::kAllReduce, bytes);
      const auto schedule = planner.Plan(collective, {algorithm, Protocol::kSimple});
      EXPECT_EQ(CheckSchedule({CollectiveKind::kAllReduce, bytes}, islands * 40,
                              [&](uint32_t) -> const CollectiveSchedule& { return *schedule; }),
                "");
      EXPECT_EQ(schedule->LaneCount(RankIndex{35}, 0, 0), 2u);
      EXPECT_GT(schedule->LaneCount(RankIndex{31}, 0, 0), 2u);
    }
  }
}

std::vector<uint32_t> WarpsOf(const CollectiveSchedule& schedule, uint32_t rank) {
  std::vector<uint32_t> warps;
  for (uint32_t lane = 0; lane < schedule.LaneCount(RankIndex{rank}, 0, 0); ++lane) {
    const WarpShare share = schedule.WarpShareOf({.rank = RankIndex{rank}, .lane = lane});
    EXPECT_EQ(share.of, 16u);
    warps.push_back(share.parts);
  }
  return warps;
}

// src/device/all_reduce.h: scatterWarps, reduceWarps, bcastWarps and gatherWarps are 8, 5, 0 and 7,
// or 6, 5, 4 and 5. Where three warps or more send, one of them does not copy
// (src/device/prims_simple.h: nworkers).
TEST(NvlsSchedule, HasTheWarpsOfNcclsAllReduce) {
  const auto plan = [](const NcclPlanner& planner, Algorithm algorithm) {
    return planner.Plan(Collective(CollectiveKind::kAllReduce, 100'000'000),
                        {algorithm, Protocol::kSimple});
  };
  const auto one = plan(NcclPlanner(Nodes(1, 8), {}), Algorithm::kNvls);
  EXPECT_THAT(WarpsOf(*one, 0), ElementsAre(7, 4, 7));
  const auto six = plan(NcclPlanner(Nodes(1, 6, 8), {}), Algorithm::kNvls);
  EXPECT_THAT(WarpsOf(*six, 5), ElementsAre(6, 6, 6));
  // A tree's root has no broadcast; one of two servers has it, and the other one a leaf.
  const auto tree = plan(NcclPlanner(Nodes(2, 8), {}), Algorithm::kNvlsTree);
  const uint32_t root = tree->LaneCount(RankIndex{0}, 0, 0) == 3 ? 0 : 8;
  EXPECT_THAT(WarpsOf(*tree, root), ElementsAre(7, 4, 7));
  EXPECT_THAT(WarpsOf(*tree, 8 - root), ElementsAre(5, 4, 3, 5));
  NcclSettings collnet;
  collnet.collnet_enable = true;
  const auto sum = plan(NcclPlanner(Nodes(2, 8), collnet), Algorithm::kNvls);
  EXPECT_THAT(WarpsOf(*sum, 0), ElementsAre(7, 2, 2, 7));
}

// src/device/all_gather.h and reduce_scatter.h: nThreadsGather and nThreadsScatter are 8 warps of
// 20, and what sends has one that does not copy.
TEST(NvlsSchedule, HasTheWarpsOfNcclsAllGatherAndReduceScatter) {
  const NcclPlanner planner(Nodes(1, 8), {});
  const auto gather = planner.Plan(Collective(CollectiveKind::kAllGather, 10'000'000),
                                   {Algorithm::kNvls, Protocol::kSimple});
  EXPECT_THAT(WarpsOf(*gather, 3), ElementsAre(11, 8));
  const auto scatter = planner.Plan(Collective(CollectiveKind::kReduceScatter, 10'000'000),
                                    {Algorithm::kNvls, Protocol::kSimple});
  EXPECT_THAT(WarpsOf(*scatter, 3), ElementsAre(7, 12));
}

// src/device/all_reduce.h: lastChunkSize is a multiple of 16 KiB where NVLS is in one server, so
// the last heads may have nothing.
TEST(NvlsSchedule, TheLastChunksInOneServerAreMultiplesOf16KiB) {
  const auto chunks = [](uint64_t count) {
    const auto schedule = NcclPlanner(Nodes(1, 8), {})
                              .Plan(Collective(CollectiveKind::kAllReduce, count),
                                    {Algorithm::kNvls, Protocol::kSimple});
    const LaneId scatter{.rank = RankIndex{0}};
    std::vector<uint64_t> bytes;
    for (uint64_t i = 0; i < schedule->StepCount(scatter); ++i) {
      bytes.push_back(schedule->StepAt(scatter, i).bytes);
    }
    return bytes;
  };
  // 640 KiB on 16 channels: 40 KiB each.
  EXPECT_THAT(chunks(640 << 10), ElementsAre(16 << 10, 16 << 10, 8 << 10, 0, 0, 0, 0, 0));
}

// NVLS is for servers that are equally full, or for one.
TEST(CheckSchedule, LooksAtTheAlgorithmsOfTheSwitch) {
  const auto has = [](const std::vector<ReplayChoice>& choices, Algorithm algorithm) {
    return std::any_of(choices.begin(), choices.end(),
                       [&](const ReplayChoice& choice) { return choice.algorithm == algorithm; });
  };
  const NcclPlanner one(Nodes(1, 8), {});
  const NcclPlanner three(Nodes(3, 8), {});
  EXPECT_TRUE(has(ChoicesFor(one, CollectiveKind::kAllReduce), Algorithm::kNvls));
  EXPECT_TRUE(has(ChoicesFor(one, CollectiveKind::kReduceScatter), Algorithm::kNvls));
  EXPECT_FALSE(has(ChoicesFor(one, CollectiveKind::kBroadcast), Algorithm::kNvls));
  EXPECT_FALSE(has(ChoicesFor(one, CollectiveKind::kAllReduce), Algorithm::kNvlsTree));
  EXPECT_TRUE(has(ChoicesFor(three, CollectiveKind::kAllReduce), Algorithm::kNvlsTree));
  EXPECT_FALSE(has(ChoicesFor(three, CollectiveKind::kAllReduce), Algorithm::kNvls));
}

// CollNet is for AllReduce over servers that are equally full, up to eight GPUs each, where it is
// asked for.
TEST(CheckSchedule, LooksAtTheAlgorithmsOfTheNetwork) {
  NcclSettings settings;
  settings.collnet_enable = true;
  const auto suits = [&](const CommunicatorLayout& layout, CollectiveKind kind) {
    const NcclPlanner planner(layout, settings);
    return planner.Choose(Collective(kind, 1), {Algorithm::kCollnetDirect, Protocol::kSimple}) &&
           planner.Choose(Collective(kind, 1), {Algorithm::kCollnetChain, Protocol::kSimple});
  };
  const auto suits_direct = [&](CollectiveKind kind) {
    return NcclPlanner(Nodes(2, 8), settings)
        .Choose(Collective(kind, 1), {Algorithm::kCollnetDirect, Protocol::kSimple})
        .has_value();
  };
  EXPECT_TRUE(suits_direct(CollectiveKind::kAllGather));
  EXPECT_TRUE(suits_direct(CollectiveKind::kReduceScatter));
  EXPECT_FALSE(suits_direct(CollectiveKind::kBroadcast));
  // These want a NIC for every GPU.
  CommunicatorLayout sharing_nics = Nodes(2, 8);
  sharing_nics.gpus_per_nic = 2;
  const ReplayChoice direct = {Algorithm::kCollnetDirect, Protocol::kSimple};
  const NcclPlanner sharing(sharing_nics, settings);
  EXPECT_FALSE(sharing.Choose(Collective(CollectiveKind::kAllGather, 1), direct));
  EXPECT_TRUE(sharing.Choose(Collective(CollectiveKind::kAllReduce, 1), direct));
  CommunicatorLayout without_nvswitch = Nodes(2, 8);
  without_nvswitch.nvswitch = false;
  EXPECT_FALSE(suits(without_nvswitch, CollectiveKind::kAllReduce));
  EXPECT_TRUE(NcclPlanner(without_nvswitch, settings)
                  .Choose(Collective(CollectiveKind::kAllReduce, 1),
                          {Algorithm::kCollnetChain, Protocol::kSimple}));
  settings.version = 21900;
  EXPECT_FALSE(suits_direct(CollectiveKind::kAllGather));
  EXPECT_TRUE(suits_direct(CollectiveKind::kAllReduce));
  settings.version = NcclSettings().version;
  EXPECT_TRUE(suits(Nodes(2, 8), CollectiveKind::kAllReduce));
  EXPECT_FALSE(suits(Nodes(2, 8), CollectiveKind::kAllGather));
  EXPECT_FALSE(suits(Nodes(1, 8), CollectiveKind::kAllReduce));
  EXPECT_FALSE(suits(Nodes({8, 7}), CollectiveKind::kAllReduce));
  EXPECT_FALSE(suits(Nodes(2, 9, 9), CollectiveKind::kAllReduce));
  settings.collnet_enable = false;
  EXPECT_FALSE(suits(Nodes(2, 8), CollectiveKind::kAllReduce));
}

std::vector<std::vector<P2pCall>> AllToAll(uint32_t ranks, uint64_t bytes) {
  std::vector<std::vector<P2pCall>> calls(ranks);
  for (auto& of_rank : calls) {
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      of_rank.push_back({true, RankIndex{peer}, bytes});
      of_rank.push_back({false, RankIndex{peer}, bytes});
    }
  }
  return calls;
}

TEST(CheckSchedule, FindsAllToAllRightForEveryRankCount) {
  for (const uint32_t version : {22705u, 22809u, 23007u}) {
    NcclSettings settings;
    settings.version = version;
    for (uint32_t ranks = 1; ranks <= 64; ranks += ranks < 20 ? 1 : 11) {
      const NcclPlanner planner(Filled(ranks), settings);
      for (const uint64_t bytes : std::vector<uint64_t>{0, 1, 70'001, 3'000'001}) {
        ASSERT_EQ(CheckP2p(planner, {CollectiveKind::kAllToAll, bytes}, AllToAll(ranks, bytes)), "")
            << bytes << " B on " << ranks << " ranks";
      }
    }
  }
}

TEST(CheckSchedule, FindsGatherAndScatterRight) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> gather(16);
  std::vector<std::vector<P2pCall>> scatter(16);
  for (RankIndex rank{0}; rank < 16; ++rank) {
    gather[rank].push_back({true, RankIndex{5}, 999'999});
    gather[5].push_back({false, RankIndex{rank}, 999'999});
    scatter[5].push_back({true, RankIndex{rank}, 999'999});
    scatter[rank].push_back({false, RankIndex{5}, 999'999});
  }
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kGather, 999'999, RankIndex{5}}, gather), "");
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kScatter, 999'999, RankIndex{5}}, scatter), "");
  // The root's own, copied where it was said not to be, and not copied where it should.
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kGather, 999'999, RankIndex{5}, true}, gather),
              HasSubstr("rank 5 stores bytes of rank 5 0 to"));
  std::erase_if(scatter[5], [](const P2pCall& call) { return call.peer == 5; });
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kScatter, 999'999, RankIndex{5}, true}, scatter),
            "");
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kScatter, 999'999, RankIndex{5}}, scatter),
              HasSubstr("rank 5 never stores the bytes of rank 5 from 0 on"));
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kAllToAll, 999'999}, gather),
              HasSubstr("never stores the bytes of rank"));
  EXPECT_THAT(
      CheckP2p(planner, {CollectiveKind::kGather, 999'999, RankIndex{5}}, AllToAll(16, 999'999)),
      HasSubstr("rank 0 stores bytes of rank 0 0 to"));
}

TEST(CheckSchedule, FindsRepeatedAndUnequalMessagesRight) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> calls(16);
  calls[0] = {{true, RankIndex{9}, 5'000'000}, {true, RankIndex{9}, 1}, {false, RankIndex{9}, 77}};
  calls[9] = {{false, RankIndex{0}, 5'000'000}, {true, RankIndex{0}, 77}, {false, RankIndex{0}, 1}};
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kSend, 0}, calls), "");
}

}  // namespace
}  // namespace railyard
