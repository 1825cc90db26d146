// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

constexpr StageWork kF = StageWork::kForward;
constexpr StageWork kB = StageWork::kBackward;
constexpr StageWork kW = StageWork::kWeightGradient;

struct Durations {
  int64_t forward = 0;
  int64_t backward = 0;
  int64_t weight_gradient = 0;
};

// Returns how long a pipeline takes whose transfers take no time; -1 if it never ends.
int64_t TimeOf(const PipelineShape& shape, const Durations& durations) {
  std::vector<std::vector<StageTask>> tasks;
  for (uint32_t stage = 0; stage < shape.stages; ++stage) tasks.push_back(StageTasks(shape, stage));
  const uint32_t virtual_stages = shape.stages * shape.chunks;
  std::map<std::tuple<StageWork, uint32_t, uint32_t>, int64_t> done;  // work, virtual, micro-batch
  std::vector<size_t> next(shape.stages, 0);
  std::vector<int64_t> now(shape.stages, 0);
  bool moves = true;
  while (moves) {
    moves = false;
    for (uint32_t stage = 0; stage < shape.stages; ++stage) {
      while (next[stage] < tasks[stage].size()) {
        const StageTask& task = tasks[stage][next[stage]];
        const uint32_t place = task.chunk * shape.stages + stage;
        std::vector<std::tuple<StageWork, uint32_t, uint32_t>> needs;
        if (task.work == kF && place > 0) needs.emplace_back(kF, place - 1, task.micro_batch);
        if (task.work == kB) needs.emplace_back(kF, place, task.micro_batch);
        if (task.work == kB && place + 1 < virtual_stages) {
          needs.emplace_back(kB, place + 1, task.micro_batch);
        }
        if (task.work == kW) needs.emplace_back(kB, place, task.micro_batch);
        int64_t begin = now[stage];
        bool ready = true;
        for (const auto& need : needs) {
          const auto it = done.find(need);
          ready = ready && it != done.end();
          if (it != done.end()) begin = std::max(begin, it->second);
        }
        if (!ready) break;
        now[stage] = begin + (task.work == kF   ? durations.forward
                              : task.work == kB ? durations.backward
                                                : durations.weight_gradient);
        done[{task.work, place, task.micro_batch}] = now[stage];
        ++next[stage];
        moves = true;
      }
    }
  }
  for (uint32_t stage = 0; stage < shape.stages; ++stage) {
    if (next[stage] < tasks[stage].size()) return -1;
  }
  return *std::max_element(now.begin(), now.end());
}

TEST(PipelineScheduleTest, OneForwardOneBackwardIsThePublishedOrder) {
  const PipelineShape shape{PipelineScheduleKind::kOneFOneB, 3, 1, 3};
  EXPECT_THAT(StageTasks(shape, 0),
              ElementsAre(StageTask{kF, 0}, StageTask{kF, 1}, StageTask{kF, 2}, StageTask{kB, 0},
                          StageTask{kB, 1}, StageTask{kB, 2}));
  EXPECT_THAT(StageTasks(shape, 2),
              ElementsAre(StageTask{kF, 0}, StageTask{kB, 0}, StageTask{kF, 1}, StageTask{kB, 1},
                          StageTask{kF, 2}, StageTask{kB, 2}));
}

// Bubble (p - 1)(f + b) beside m (f + b) of work: its share is (p - 1) / (p - 1 + m).
TEST(PipelineScheduleTest, TheBubbleOfOneForwardOneBackwardIsTheClosedForm) {
  for (const auto& [stages, count] : {std::pair{1u, 3u}, {2u, 1u}, {4u, 4u}, {4u, 16u}, {8u, 3u}}) {
    EXPECT_EQ(TimeOf({PipelineScheduleKind::kOneFOneB, stages, 1, count}, {10, 20, 0}),
              (count + stages - 1) * 30)
        << stages << " " << count;
  }
}

// Narayanan et al., section 2.2.2: chunks divide the bubble.
TEST(PipelineScheduleTest, InterleavingDividesTheBubble) {
  for (const auto& [stages, chunks, count] :
       {std::tuple{2u, 2u, 4u}, {4u, 2u, 8u}, {4u, 4u, 16u}, {4u, 3u, 4u}}) {
    // A chunk takes 1 / chunks of the stage's time.
    EXPECT_EQ(TimeOf({PipelineScheduleKind::kInterleaved, stages, chunks, count}, {10, 20, 0}),
              (count * chunks + stages - 1) * 30)
        << stages << " " << chunks << " " << count;
  }
}

// Qi et al., table 2: (p - 1)(f + b - w), with equal times a third of one forward one backward's.
TEST(PipelineScheduleTest, ZeroBubbleLeavesAThird) {
  for (const auto& [stages, count] : {std::pair{2u, 4u}, {4u, 8u}, {4u, 12u}, {8u, 24u}}) {
    EXPECT_EQ(TimeOf({PipelineScheduleKind::kZeroBubble, stages, 1, count}, {10, 10, 10}),
              count * 30 + (stages - 1) * 10)
        << stages << " " << count;
  }
}

TEST(PipelineScheduleTest, EveryTaskIsThereOnce) {
  for (const PipelineShape& shape : {PipelineShape{PipelineScheduleKind::kOneFOneB, 4, 1, 2},
                                     PipelineShape{PipelineScheduleKind::kInterleaved, 4, 3, 8},
                                     PipelineShape{PipelineScheduleKind::kZeroBubble, 4, 1, 2}}) {
    EXPECT_GE(TimeOf(shape, {1, 1, 1}), 0);
    for (uint32_t stage = 0; stage < shape.stages; ++stage) {
      std::vector<StageTask> tasks = StageTasks(shape, stage);
      const size_t kinds = shape.kind == PipelineScheduleKind::kZeroBubble ? 3 : 2;
      EXPECT_EQ(tasks.size(), kinds * shape.chunks * shape.micro_batches);
      for (const StageTask& task : tasks) {
        EXPECT_EQ(std::count(tasks.begin(), tasks.end(), task), 1);
      }
    }
  }
}

}  // namespace
}  // namespace railyard
