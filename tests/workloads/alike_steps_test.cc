// SPDX-License-Identifier: GPL-2.0-only
// Rows of alike steps: a reader that uses a schedule's rows sees the same program as one that
// asks for every step, and asks rarely.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::Nodes;
using ::railyard::testing::PlanRing;

constexpr uint32_t kRanks = 16;

// Checks the lane's steps against their rows and returns how many rows there are.
uint64_t CheckRows(const CollectiveSchedule& schedule, const LaneId& lane) {
  const uint64_t steps = schedule.StepCount(lane);
  uint64_t rows = 0;
  for (uint64_t first = 0; first < steps;) {
    const uint64_t alike = schedule.AlikeFrom(lane, first);
    EXPECT_GE(alike, 1u);
    EXPECT_LE(first + alike, steps);
    if (alike == 0 || first + alike > steps) return rows;
    const Step of_row = schedule.StepAt(lane, first);
    for (uint64_t i = first; i < first + alike; ++i) {
      const Step step = schedule.StepAt(lane, i);
      EXPECT_EQ(step.recv_from, of_row.recv_from) << i;
      EXPECT_EQ(step.send_to, of_row.send_to) << i;
      EXPECT_EQ(step.bytes, of_row.bytes) << i;
      EXPECT_EQ(step.work_per_mille, of_row.work_per_mille) << i;
    }
    first += alike;
    ++rows;
  }
  return rows;
}

// Returns how often the lane begins anew, with a step that only sends; 0 for chains.
uint64_t LoopCount(const CollectiveSchedule& schedule, const LaneId& lane) {
  const LanePeers peers = schedule.PeersOf(lane);
  if (peers.recv_from.empty() || peers.send_to.empty()) return 0;
  uint64_t loops = 0;
  for (uint64_t i = 0; i < schedule.StepCount(lane); ++i) {
    if (schedule.StepAt(lane, i).recv_from == kNoPeer) ++loops;
  }
  return loops;
}

class AlikeStepsTest : public ::testing::TestWithParam<CollectiveKind> {};

TEST_P(AlikeStepsTest, OfARingHaveEqualPeersAndBytesAndAreManyPerRow) {
  const NcclPlanner planner(Nodes(2, 8), NcclSettings{});
  for (const uint64_t count : {uint64_t{1}, uint64_t{100}, uint64_t{4'096}, uint64_t{1'000'003},
                               uint64_t{16} << 20, uint64_t{123'456'789}}) {
    JobCollective collective;
    collective.kind = GetParam();
    collective.count = count;
    collective.datatype = Datatype::kFloat32;
    collective.root = RankIndex{3};
    const auto schedule = PlanRing(planner, collective);
    for (uint32_t channel = 0; channel < schedule->channel_count(); ++channel) {
      for (RankIndex rank{0}; rank < kRanks; ++rank) {
        if (schedule->BatchCount(rank, channel) == 0) continue;
        const LaneId lane{rank, channel, 0, 0};
        const uint64_t rows = CheckRows(*schedule, lane);
        // Full chunks and the rest of a chain. A loop of the others has a first and a last step;
        // in between an AllReduce goes round twice and may meet the end of the bytes each time, in
        // front of a shorter chunk and of empty ones.
        const uint64_t loops = LoopCount(*schedule, lane);
        EXPECT_LE(rows, loops == 0 ? 2 : 3 * loops + 6);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AlikeStepsTest,
                         ::testing::Values(CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                           CollectiveKind::kReduceScatter,
                                           CollectiveKind::kBroadcast, CollectiveKind::kReduce),
                         [](const ::testing::TestParamInfo<CollectiveKind>& kind) {
                           return std::string(CollectiveKindName(kind.param));
                         });

TEST(AlikeStepsOfMessagesTest, AreFullChunksAndTheRest) {
  const NcclPlanner planner(Nodes(2, 8), NcclSettings{});
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 20, uint64_t{9'999'999}}) {
    const std::vector<P2pCall> calls = {{true, RankIndex{1}, bytes}, {false, RankIndex{12}, bytes}};
    const auto schedule = planner.PlanP2p(RankIndex{0}, calls.data(), 2);
    for (uint32_t channel = 0; channel < schedule->channel_count(); ++channel) {
      for (uint32_t batch = 0; batch < schedule->BatchCount(RankIndex{0}, channel); ++batch) {
        for (uint32_t lane = 0; lane < schedule->LaneCount(RankIndex{0}, channel, batch); ++lane) {
          EXPECT_LE(CheckRows(*schedule, {RankIndex{0}, channel, batch, lane}), 2u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace railyard
