// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/pipeline_schedule.h"

#include <algorithm>

namespace railyard {
namespace {

std::vector<StageTask> ZeroBubbleTasks(const PipelineShape& shape, uint32_t stage) {
  const uint32_t count = shape.micro_batches;
  const uint32_t warmup = std::min(shape.stages - 1 - stage, count);
  std::vector<StageTask> tasks;
  uint32_t forward = 0;
  uint32_t weight = 0;
  for (; forward < warmup; ++forward) tasks.push_back({StageWork::kForward, forward});
  for (uint32_t backward = 0; backward < count; ++backward) {
    const bool is_steady = forward < count;
    if (is_steady) tasks.push_back({StageWork::kForward, forward++});
    tasks.push_back({StageWork::kBackward, backward});
    if (!is_steady || backward + 1 - weight > stage) {
      tasks.push_back({StageWork::kWeightGradient, weight++});
    }
  }
  for (; weight < count; ++weight) tasks.push_back({StageWork::kWeightGradient, weight});
  return tasks;
}

// The k-th forward (or backward) of a stage: groups of `stages` micro-batches pass one chunk after
// the other.
StageTask InterleavedTask(const PipelineShape& shape, StageWork work, uint32_t k) {
  const uint32_t group_size = shape.stages * shape.chunks;
  const uint32_t chunk = k % group_size / shape.stages;
  return {work, k / group_size * shape.stages + k % shape.stages,
          work == StageWork::kForward ? chunk : shape.chunks - 1 - chunk};
}

}  // namespace

std::vector<StageTask> StageTasks(const PipelineShape& shape, uint32_t stage) {
  if (shape.kind == PipelineScheduleKind::kZeroBubble) return ZeroBubbleTasks(shape, stage);
  const uint32_t count = shape.micro_batches * shape.chunks;
  uint32_t warmup = std::min(shape.stages - 1 - stage, count);
  if (shape.chunks > 1) {
    warmup = std::min((shape.stages - 1 - stage) * 2 + (shape.chunks - 1) * shape.stages, count);
    // Megatron-LM: nothing would be saved by beginning backward passes earlier.
    if (shape.micro_batches == shape.stages) warmup = count;
  }
  std::vector<StageTask> tasks;
  uint32_t forward = 0;
  for (; forward < warmup; ++forward) {
    tasks.push_back(InterleavedTask(shape, StageWork::kForward, forward));
  }
  for (uint32_t backward = 0; backward < count; ++backward) {
    if (forward < count) {
      tasks.push_back(InterleavedTask(shape, StageWork::kForward, forward++));
    }
    tasks.push_back(InterleavedTask(shape, StageWork::kBackward, backward));
  }
  return tasks;
}

std::pair<uint32_t, uint32_t> LayersOf(const Plan& plan, uint32_t virtual_stage) {
  const auto& training = std::get<Training>(plan.job);
  const uint64_t layers = plan.model.layers;
  const uint64_t stages = uint64_t{plan.parallelism.pipeline()} * training.virtual_stages;
  return {static_cast<uint32_t>(layers * virtual_stage / stages),
          static_cast<uint32_t>(layers * (virtual_stage + 1) / stages)};
}

}  // namespace railyard
