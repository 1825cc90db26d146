// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_check.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;
using ::railyard::testing::PlanRing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr CollectiveKind kRingKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                         CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                         CollectiveKind::kReduce};

JobCollective Collective(CollectiveKind kind, uint64_t bytes, uint32_t root = 0) {
  JobCollective collective;
  collective.kind = kind;
  collective.count = bytes;
  collective.datatype = Datatype::kInt8;
  collective.root = root;
  return collective;
}

std::string CheckRing(const NcclPlanner& planner, CollectiveKind kind, uint64_t bytes,
                      uint32_t root) {
  const auto schedule = PlanRing(planner, Collective(kind, bytes, root));
  return CheckSchedule({kind, bytes, root}, static_cast<uint32_t>(planner.layout().ranks.size()),
                       [&](uint32_t) -> const CollectiveSchedule& { return *schedule; });
}

TEST(CheckSchedule, FindsTheRingSchedulesOfEveryRankCountRight) {
  for (uint32_t ranks = 1; ranks <= 64; ++ranks) {
    const NcclPlanner planner(Filled(ranks), {});
    for (const CollectiveKind kind : kRingKinds) {
      for (const uint64_t bytes : std::vector<uint64_t>{0, 1, 5, 63, 1'000, 100'003}) {
        ASSERT_EQ(CheckRing(planner, kind, bytes, ranks / 3), "")
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
      ASSERT_EQ(CheckRing(planner, kind, (uint64_t{1} << 30) + 12'345, 7), "");
    }
  }
}

TEST(CheckSchedule, Finds1024RanksRightOnOneChannelInSeconds) {
  NcclSettings settings;
  settings.max_nchannels = 1;
  const NcclPlanner planner(Nodes(128, 8), settings);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(CheckRing(planner, CollectiveKind::kAllReduce, 64 << 20, 0), "");
  EXPECT_EQ(CheckRing(planner, CollectiveKind::kAllGather, 1 << 20, 0), "");
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
                        uint64_t bytes, uint32_t root) {
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
        ASSERT_EQ(CheckChoice(planner, choice, kind, bytes, ranks / 3), "")
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
          ASSERT_EQ(CheckChoice(planner, choice, CollectiveKind::kAllReduce, bytes, 0), "")
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
              CheckChoice(planner, {Algorithm::kCollnetDirect, Protocol::kSimple}, kind, bytes, 0),
              "")
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
    ASSERT_EQ(CheckChoice(planner, choice, CollectiveKind::kAllReduce, 300'007, 0), "")
        << ReplayName(choice);
  }
  // A block of its own in each message, and as many in one as NCCL puts there.
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    if (planner.layout().node_count() > 1 && ranks % 8 == 0) {
      ASSERT_EQ(
          CheckChoice(planner, {Algorithm::kCollnetDirect, Protocol::kSimple}, kind, 1'003, 0), "");
    }
    for (const Algorithm algorithm : {Algorithm::kPat, Algorithm::kDirect}) {
      for (const uint64_t bytes : std::vector<uint64_t>{1'003, 300'007}) {
        if (bytes > 2'000 && (algorithm == Algorithm::kDirect || ranks > 257)) continue;
        ASSERT_EQ(CheckChoice(planner, {algorithm, Protocol::kSimple}, kind, bytes, 0), "")
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
      EXPECT_EQ(CheckSchedule({CollectiveKind::kAllReduce, bytes, 0}, islands * 40,
                              [&](uint32_t) -> const CollectiveSchedule& { return *schedule; }),
                "");
      EXPECT_EQ(schedule->LaneCount(RankIndex{35}, 0, 0), 2u);
      EXPECT_GT(schedule->LaneCount(RankIndex{31}, 0, 0), 2u);
      const auto share_of = [&](uint32_t rank, uint32_t lane) {
        const WarpShare share = schedule->WarpShareOf({.rank = RankIndex{rank}, .lane = lane});
        return std::pair(share.parts, share.of);
      };
      if (islands == 1) {
        // The warps that move the own slice take as long as those that move the slices of all.
        EXPECT_EQ(share_of(0, 0), std::pair(1u, 1u));
        EXPECT_EQ(share_of(0, 1), std::pair(1u, 32u));
        continue;
      }
      // src/device/all_reduce.h: scatterWarps, reduceWarps, bcastWarps and gatherWarps, of a tree's
      // root (which has no broadcast) and of its leaf. One of the two islands has either.
      const uint32_t root = schedule->LaneCount(RankIndex{0}, 0, 0) == 3 ? 0 : 40;
      const uint32_t leaf = 40 - root;
      const auto shares_of = [&](uint32_t rank) {
        std::vector<uint32_t> warps;
        for (uint32_t lane = 0; lane < schedule->LaneCount(RankIndex{rank}, 0, 0); ++lane) {
          EXPECT_EQ(share_of(rank, lane).second, 16u);
          warps.push_back(share_of(rank, lane).first);
        }
        return warps;
      };
      EXPECT_THAT(shares_of(root), ElementsAre(8, 5, 7));
      EXPECT_THAT(shares_of(leaf), ElementsAre(6, 5, 4, 5));
    }
  }
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

// All ranks' point-to-point schedules of one operation.
std::string CheckP2p(const NcclPlanner& planner, const ScheduleSubject& subject,
                     const std::vector<std::vector<P2pCall>>& calls) {
  std::vector<std::shared_ptr<const CollectiveSchedule>> schedules;
  for (RankIndex rank{0}; rank < calls.size(); ++rank) {
    schedules.push_back(
        planner.PlanP2p(rank, calls[rank].data(), static_cast<uint32_t>(calls[rank].size())));
  }
  return CheckSchedule(
      subject, static_cast<uint32_t>(calls.size()),
      [&](uint32_t rank) -> const CollectiveSchedule& { return *schedules[rank]; });
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
        ASSERT_EQ(CheckP2p(planner, {CollectiveKind::kAllToAll, bytes, 0}, AllToAll(ranks, bytes)),
                  "")
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
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kGather, 999'999, 5}, gather), "");
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kScatter, 999'999, 5}, scatter), "");
  // The root's own, copied where it was said not to be, and not copied where it should.
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kGather, 999'999, 5, true}, gather),
              HasSubstr("rank 5 stores bytes of rank 5 0 to"));
  std::erase_if(scatter[5], [](const P2pCall& call) { return call.peer == 5; });
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kScatter, 999'999, 5, true}, scatter), "");
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kScatter, 999'999, 5}, scatter),
              HasSubstr("rank 5 never stores the bytes of rank 5 from 0 on"));
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kAllToAll, 999'999, 0}, gather),
              HasSubstr("never stores the bytes of rank"));
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kGather, 999'999, 5}, AllToAll(16, 999'999)),
              HasSubstr("rank 0 stores bytes of rank 0 0 to"));
}

TEST(CheckSchedule, FindsRepeatedAndUnequalMessagesRight) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> calls(16);
  calls[0] = {{true, RankIndex{9}, 5'000'000}, {true, RankIndex{9}, 1}, {false, RankIndex{9}, 77}};
  calls[9] = {{false, RankIndex{0}, 5'000'000}, {true, RankIndex{0}, 77}, {false, RankIndex{0}, 1}};
  EXPECT_EQ(CheckP2p(planner, {CollectiveKind::kSend, 0, 0}, calls), "");
}

TEST(CheckSchedule, ReportsMessagesOfDifferentSize) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> calls(16);
  calls[0] = {{true, RankIndex{9}, 1'000}};
  calls[9] = {{false, RankIndex{0}, 1'001}};
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kSend, 0, 0}, calls),
              HasSubstr("receives 1001 B at offset 0 where rank 0 sent 1000 B"));
}

TEST(CheckSchedule, ReportsAMessageThatNobodyReceives) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> calls(16);
  calls[0] = {{true, RankIndex{9}, 1'000}};
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kSend, 0, 0}, calls),
              HasSubstr("rank 9 never receives 1 of the messages of rank 0"));
}

// A right schedule with some steps changed, for as many steps as `step_count` leaves.
class Broken final : public CollectiveSchedule {
 public:
  using Change = std::function<void(const LaneId&, uint64_t, Step&)>;
  Broken(std::shared_ptr<const CollectiveSchedule> inner, Change change)
      : inner_(std::move(inner)), change_(std::move(change)) {}

  uint32_t rank_count() const override { return inner_->rank_count(); }
  uint32_t channel_count() const override { return inner_->channel_count(); }
  const MessageRule& message_rule() const override { return inner_->message_rule(); }
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override {
    return inner_->BatchCount(rank, channel);
  }
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override {
    return inner_->LaneCount(rank, channel, batch);
  }
  LanePeers PeersOf(const LaneId& lane) const override { return inner_->PeersOf(lane); }
  uint64_t StepCount(const LaneId& lane) const override {
    return inner_->StepCount(lane) - (lane.rank == dropped_rank ? 1 : 0);
  }
  Step StepAt(const LaneId& lane, uint64_t index) const override {
    Step step = inner_->StepAt(lane, index + (lane.rank == dropped_rank && drop_first ? 1 : 0));
    if (change_) change_(lane, index, step);
    return step;
  }

  uint32_t dropped_rank = UINT32_MAX;  // does one step less: its last,
  bool drop_first = false;             // or its first

 private:
  std::shared_ptr<const CollectiveSchedule> inner_;
  Change change_;
};

constexpr uint64_t kBytes = 4096;

Broken BreakOneChannel(CollectiveKind kind, Broken::Change change) {
  NcclSettings settings;
  settings.max_nchannels = 1;
  return Broken(PlanRing(NcclPlanner(Nodes(1, 4), settings), Collective(kind, kBytes)),
                std::move(change));
}

std::string Check(const Broken& schedule, CollectiveKind kind) {
  return CheckSchedule({kind, kBytes, 0}, 4,
                       [&](uint32_t) -> const CollectiveSchedule& { return schedule; });
}

TEST(CheckSchedule, ReportsADroppedLastStep) {
  Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce, nullptr);
  schedule.dropped_rank = 2;
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce),
              HasSubstr("rank 2 never receives 1 of the messages of rank 1"));
}

TEST(CheckSchedule, ReportsADroppedFirstStep) {
  Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce, nullptr);
  schedule.dropped_rank = 2;
  schedule.drop_first = true;
  EXPECT_NE(Check(schedule, CollectiveKind::kAllReduce), "");
}

TEST(CheckSchedule, ReportsAContributionLeftOut) {
  const Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce,
                                          [](const LaneId& lane, uint64_t index, Step& step) {
                                            if (lane.rank == 1 && index == 1)
                                              step.reduce = step.load_local = false;
                                          });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce),
              HasSubstr("without the contribution of rank 1"));
}

TEST(CheckSchedule, ReportsAContributionAddedTwice) {
  const Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce,
                                          [](const LaneId& lane, uint64_t index, Step& step) {
                                            if (lane.rank == 1 && index == 5)
                                              step.reduce = step.load_local = true;
                                          });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce),
              HasSubstr("rank 1, channel 0, batch 0, lane 0, step 5: adds the contribution of rank "
                        "1 a second time"));
}

TEST(CheckSchedule, ReportsAWrongOffset) {
  const Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce,
                                          [](const LaneId& lane, uint64_t index, Step& step) {
                                            if (lane.rank == 1 && index == 0)
                                              step.offset_bytes += 16;
                                          });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce), HasSubstr("where rank 1 sent"));
}

TEST(CheckSchedule, ReportsAWrongSize) {
  const Broken schedule =
      BreakOneChannel(CollectiveKind::kReduceScatter, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 3) step.bytes -= 1;
      });
  EXPECT_THAT(Check(schedule, CollectiveKind::kReduceScatter), HasSubstr("4095 B"));
}

TEST(CheckSchedule, ReportsADeadlock) {
  // Nobody sends before it has received.
  const Broken schedule = BreakOneChannel(
      CollectiveKind::kAllReduce, [](const LaneId& lane, uint64_t index, Step& step) {
        if (index == 0) {
          step.recv_from = static_cast<int32_t>((lane.rank + 3) % 4);
          step.reduce = true;
        }
      });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce), HasSubstr("waits for ever"));
}

TEST(CheckSchedule, ReportsAResultStoredNeverOrTwice) {
  const Broken never =
      BreakOneChannel(CollectiveKind::kBroadcast, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 2) step.store = false;
      });
  EXPECT_THAT(Check(never, CollectiveKind::kBroadcast),
              HasSubstr("rank 2 never stores the bytes from 0 on"));
  const Broken twice =
      BreakOneChannel(CollectiveKind::kAllReduce, [](const LaneId&, uint64_t, Step& step) {
        if (step.offset_bytes == 3072) step.offset_bytes = 0;
      });
  EXPECT_THAT(Check(twice, CollectiveKind::kAllReduce),
              HasSubstr("rank 0 stores bytes from 0 on twice"));
}

TEST(CheckSchedule, ReportsWhatIsStoredOutsideTheResult) {
  const Broken schedule =
      BreakOneChannel(CollectiveKind::kReduceScatter, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 0 && step.store) step.offset_bytes += kBytes;
        if (lane.rank == 3 && step.offset_bytes == 0) step.offset_bytes += kBytes;
      });
  EXPECT_NE(Check(schedule, CollectiveKind::kReduceScatter), "");
  const Broken beyond =
      BreakOneChannel(CollectiveKind::kAllReduce,
                      [](const LaneId&, uint64_t, Step& step) { step.offset_bytes += kBytes; });
  EXPECT_THAT(Check(beyond, CollectiveKind::kAllReduce), HasSubstr("of a buffer of 4096 B"));
  const Broken reduce =
      BreakOneChannel(CollectiveKind::kReduce, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 3) step.store = true;
      });
  EXPECT_THAT(Check(reduce, CollectiveKind::kReduce),
              HasSubstr("stores 4096 B at offset 0 without the contribution of rank 0"));
}

TEST(CheckSchedule, ReportsBlocksOfTheWrongRank) {
  const Broken load = BreakOneChannel(CollectiveKind::kAllGather,
                                      [](const LaneId& lane, uint64_t index, Step& step) {
                                        if (lane.rank == 1 && index == 0) step.offset_bytes = 0;
                                      });
  EXPECT_THAT(Check(load, CollectiveKind::kAllGather), HasSubstr("outside its own block"));
  const Broken source =
      BreakOneChannel(CollectiveKind::kBroadcast, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 0) step.store = false;
        if (lane.rank == 1) step.recv_from = kNoPeer, step.load_local = true;
      });
  EXPECT_THAT(Check(source, CollectiveKind::kBroadcast), HasSubstr("not of the root 0"));
}

TEST(CheckSchedule, ReportsStepsThatMakeNoSense) {
  const auto first_step = [](const std::function<void(Step&)>& change) {
    return Check(BreakOneChannel(CollectiveKind::kAllReduce,
                                 [change](const LaneId& lane, uint64_t index, Step& step) {
                                   if (lane.rank == 1 && index == 0) change(step);
                                 }),
                 CollectiveKind::kAllReduce);
  };
  EXPECT_THAT(first_step([](Step& step) { step.send_to = 4; }), HasSubstr("not another rank"));
  EXPECT_THAT(first_step([](Step& step) { step.send_to = 1; }), HasSubstr("not another rank"));
  EXPECT_THAT(first_step([](Step& step) { step.reduce = true; }), HasSubstr("reduces without"));
  EXPECT_THAT(first_step([](Step& step) { step.load_local = false; }), HasSubstr("has no data"));
  EXPECT_THAT(first_step([](Step& step) { step.recv_from = 0; }), HasSubstr("without reducing"));
  EXPECT_THAT(first_step([](Step& step) {
                step.load_local = false;
                step.load_kept = true;
              }),
              HasSubstr("loads offset 0, where it has kept nothing"));
  EXPECT_THAT(first_step([](Step& step) { step.pieces = 3; }),
              HasSubstr("divides 1024 B among 3 pieces"));
  EXPECT_THAT(first_step([](Step& step) {
                step.pieces = 2;
                step.stride_bytes = 2048;
              }),
              HasSubstr("receives 1 pieces 0 B apart where rank 1 sent 2, 2048 B apart"));
}

}  // namespace
}  // namespace railyard
