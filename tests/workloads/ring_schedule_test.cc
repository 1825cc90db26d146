// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/ring_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

RingSchedule Make(CollectiveKind kind, std::vector<uint32_t> ring, uint64_t block_bytes,
                  uint64_t chunk_bytes, RankIndex root = {}) {
  RingParameters parameters;
  parameters.kind = kind;
  parameters.block_bytes = block_bytes;
  parameters.root = root;
  parameters.chunk_bytes = chunk_bytes;
  parameters.shares = {{0, block_bytes}};
  return RingSchedule(
      std::make_shared<RingTable>(std::vector<std::vector<uint32_t>>{std::move(ring)}), parameters);
}

// "recv<from|send>to @offset +bytes flags" of each step, to compare programs as text.
std::vector<std::string> Program(const RingSchedule& schedule, uint32_t rank) {
  std::vector<std::string> program;
  const LaneId lane{RankIndex{rank}, 0, 0, 0};
  for (uint64_t i = 0; i < schedule.StepCount(lane); ++i) {
    const Step step = schedule.StepAt(lane, i);
    std::string text;
    if (step.recv_from != kNoPeer) text += "recv " + std::to_string(step.recv_from) + " ";
    if (step.load_local) text += "load ";
    if (step.reduce) text += "reduce ";
    if (step.store) text += "store ";
    if (step.send_to != kNoPeer) text += "send " + std::to_string(step.send_to) + " ";
    program.push_back(text + "@" + std::to_string(step.offset_bytes) + "+" +
                      std::to_string(step.bytes));
  }
  return program;
}

TEST(RingSchedule, RunsAllReduceAsNcclDoes) {
  // Ring 0 → 2 → 1 → 3; rank 1 is at position 2. Four chunks of 16 B.
  const auto schedule = Make(CollectiveKind::kAllReduce, {0, 2, 1, 3}, 64, 512);
  EXPECT_THAT(Program(schedule, 1),
              ElementsAre("load send 3 @16+16", "recv 2 load reduce send 3 @0+16",
                          "recv 2 load reduce send 3 @48+16",
                          "recv 2 load reduce store send 3 @32+16", "recv 2 store send 3 @16+16",
                          "recv 2 store send 3 @0+16", "recv 2 store @48+16"));
}

TEST(RingSchedule, RunsAllReduceOfTwoRanks) {
  const auto schedule = Make(CollectiveKind::kAllReduce, {0, 1}, 32, 512);
  EXPECT_THAT(Program(schedule, 0),
              ElementsAre("load send 1 @16+16", "recv 1 load reduce store send 1 @0+16",
                          "recv 1 store @16+16"));
}

TEST(RingSchedule, SplitsTheRestOfAnAllReduceAmongTheRanks) {
  // Four ranks, chunks of 2 MiB: a loop of 8 MiB, then 2 MiB in chunks of 512 KiB.
  const auto schedule = Make(CollectiveKind::kAllReduce, {0, 1, 2, 3}, 10 << 20, 2 << 20);
  const LaneId lane{RankIndex{1}, 0, 0, 0};
  ASSERT_EQ(schedule.StepCount(lane), 14u);
  for (uint64_t i = 0; i < 7; ++i) EXPECT_EQ(schedule.StepAt(lane, i).bytes, 2u << 20);
  for (uint64_t i = 7; i < 14; ++i) EXPECT_EQ(schedule.StepAt(lane, i).bytes, 512u << 10);
  EXPECT_EQ(schedule.StepAt(lane, 7).offset_bytes, 8u << 20);  // chunk 0 of the second loop
}

TEST(RingSchedule, RoundsSmallChunksTo16BytesAndLeavesTheLastEmpty) {
  // 100 B over 8 ranks: ceil(12.5) → 16; six of 16, one of 4, one of 0.
  const auto schedule = Make(CollectiveKind::kAllReduce, {0, 1, 2, 3, 4, 5, 6, 7}, 100, 2 << 20);
  std::vector<uint64_t> first_sends;  // position i sends chunk i-1 first
  for (RankIndex rank{0}; rank < 8; ++rank) {
    first_sends.push_back(schedule.StepAt({rank, 0, 0, 0}, 0).bytes);
  }
  EXPECT_THAT(first_sends, ElementsAre(0, 16, 16, 16, 16, 16, 16, 4));
}

TEST(RingSchedule, RunsAllGatherAsNcclDoes) {
  const auto schedule = Make(CollectiveKind::kAllGather, {0, 2, 1, 3}, 10, 512);
  EXPECT_THAT(Program(schedule, 1),
              ElementsAre("load store send 3 @10+10", "recv 2 store send 3 @20+10",
                          "recv 2 store send 3 @0+10", "recv 2 store @30+10"));
}

TEST(RingSchedule, RunsReduceScatterAsNcclDoes) {
  const auto schedule = Make(CollectiveKind::kReduceScatter, {0, 2, 1, 3}, 10, 512);
  EXPECT_THAT(Program(schedule, 1),
              ElementsAre("load send 3 @20+10", "recv 2 load reduce send 3 @0+10",
                          "recv 2 load reduce send 3 @30+10", "recv 2 load reduce store @10+10"));
}

TEST(RingSchedule, LoopsOverABlockInChunksOfFullSize) {
  const auto schedule = Make(CollectiveKind::kAllGather, {0, 1}, 1200, 512);
  EXPECT_THAT(Program(schedule, 0),
              ElementsAre("load store send 1 @0+512", "recv 1 store @1200+512",
                          "load store send 1 @512+512", "recv 1 store @1712+512",
                          "load store send 1 @1024+176", "recv 1 store @2224+176"));
}

TEST(RingSchedule, BroadcastsFromTheRootAlongTheRing) {
  const auto schedule = Make(CollectiveKind::kBroadcast, {0, 2, 1, 3}, 600, 512, RankIndex{2});
  EXPECT_THAT(Program(schedule, 2),
              ElementsAre("load store send 1 @0+512", "load store send 1 @512+88"));
  EXPECT_THAT(Program(schedule, 3),
              ElementsAre("recv 1 store send 0 @0+512", "recv 1 store send 0 @512+88"));
  EXPECT_THAT(Program(schedule, 0), ElementsAre("recv 3 store @0+512", "recv 3 store @512+88"));
}

TEST(RingSchedule, ReducesFromTheRanksAfterTheRootRoundToIt) {
  const auto schedule = Make(CollectiveKind::kReduce, {0, 2, 1, 3}, 600, 512, RankIndex{2});
  EXPECT_THAT(Program(schedule, 1), ElementsAre("load send 3 @0+512", "load send 3 @512+88"));
  EXPECT_THAT(Program(schedule, 0),
              ElementsAre("recv 3 load reduce send 2 @0+512", "recv 3 load reduce send 2 @512+88"));
  EXPECT_THAT(Program(schedule, 2),
              ElementsAre("recv 0 load reduce store @0+512", "recv 0 load reduce store @512+88"));
}

TEST(RingSchedule, HasNothingToDoOnAnIdleChannel) {
  const auto schedule = Make(CollectiveKind::kAllReduce, {0, 1}, 0, 512);
  EXPECT_EQ(schedule.BatchCount(RankIndex{0}, 0), 0u);
  EXPECT_EQ(schedule.LaneCount(RankIndex{0}, 0, 0), 0u);
  EXPECT_EQ(schedule.StepCount({RankIndex{0}, 0, 0, 0}), 0u);
}

}  // namespace
}  // namespace railyard
