// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/plan_estimate.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "workloads/plans/parallelism/rank_groups.h"
#include "workloads/plans/rank_timeline.h"
#include "workloads/plans/training/stage_weights.h"
#include "workloads/plans/training/training_times.h"

namespace railyard {
namespace {

struct StageTimeline {
  TimeBreakdown parts;
  uint32_t rank = 0;
};

StageTimeline LongestOf(const Trace& trace, const CallTimes& times) {
  const auto time_ps = [&](const PlannedCall& call) { return times.TimePs(call); };
  const std::vector<ExpertTime> experts = ExpertTimesOf(trace, time_ps);
  StageTimeline longest;
  for (const std::vector<uint32_t>& ranks : trace.operations.RanksOfPrograms()) {
    if (ranks.empty()) continue;
    const uint32_t rank = ranks.front();
    const RankTimeline timeline = TimelineOf(trace, rank, time_ps);
    const ExpertTime& of_experts = experts[rank];
    const TimeBreakdown parts{
        .compute_ps = timeline.compute_ps,
        .tensor_ps = timeline.blocking_ps - timeline.expert_ps,
        .expert_ps = timeline.expert_ps - of_experts.alone_ps + of_experts.exchange_ps,
        .data_ps = timeline.exposed_ps,
        .wait_ps = of_experts.wait_ps,
        .overlap_ps = timeline.beside_ps - timeline.exposed_ps};
    if (parts.total_ps() > longest.parts.total_ps()) longest = {parts, rank};
  }
  return longest;
}

// Returns the time of one micro-batch's transfer over one boundary: the longest that any rank
// sends.
int64_t TransferPs(const Trace& trace, const CallTimes& times) {
  int64_t longest_ps = 0;
  for (const std::vector<uint32_t>& ranks : trace.operations.RanksOfPrograms()) {
    if (ranks.empty()) continue;
    ForEachCall(trace, ranks.front(), [&](const PlannedCall& call) {
      if (call.kind != CollectiveKind::kSend) return;
      longest_ps = std::max(longest_ps, times.TimePs(call));
    });
  }
  return longest_ps;
}

}  // namespace

EstimateResult EstimatePlan(const Plan& plan, const Trace& trace, const CallTimes& times) {
  const auto [parts, rank] = LongestOf(trace, times);
  EstimateResult estimate{.parts = parts, .rank = rank};
  const auto* const training = std::get_if<Training>(&plan.job);
  if (training != nullptr) estimate.iterations = training->iterations;
  const int64_t stages = plan.parallelism.pipeline();
  if (training == nullptr || plan.layered || stages == 1) return estimate;

  const RankGroups groups(plan.parallelism);
  const uint32_t stage = groups.PlaceOf(rank)[static_cast<size_t>(Dimension::kPipeline)];
  const int64_t iterations = training->iterations;
  const int64_t micro_batches = training->micro_batches;
  const int64_t chunks = training->virtual_stages;
  const TrainingTimes times_of_plan(plan);
  const StageWeights weights(plan, stage);
  const int64_t once_ps =
      times_of_plan.ZeroGradientsPs(weights) + times_of_plan.OptimizerPs(weights);
  const int64_t passes_ps =
      parts.compute_ps + parts.tensor_ps + parts.expert_ps + parts.wait_ps - iterations * once_ps;
  const int64_t share = training->schedule == PipelineScheduleKind::kZeroBubble ? 3 : chunks;
  estimate.parts.bubble_ps = (stages - 1) * passes_ps / micro_batches / share;
  const int64_t transfers = training->schedule == PipelineScheduleKind::kInterleaved
                                ? 2 * (stages * chunks - 1)
                                : 2 * (stages - 1) * ((micro_batches + stages - 1) / stages);
  estimate.parts.pipeline_ps = iterations * transfers * TransferPs(trace, times);
  return estimate;
}

}  // namespace railyard
