// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/plan_estimate.h"

#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

#include "simulator/units/divide_up.h"
#include "workloads/plans/parallelism/rank_groups.h"
#include "workloads/plans/rank_timeline.h"
#include "workloads/plans/training/stage_weights.h"
#include "workloads/plans/training/training_times.h"

namespace railyard {
namespace {

struct RankParts {
  TimeBreakdown parts;
  GlobalRank rank{};
};

// Returns the times of each rank that CallTimes distinguishes.
std::vector<RankParts> PartsOfRanks(const Trace& trace, const CallTimes& times) {
  const auto time_ps = [&](const PlannedCall& call) { return times.TimePs(call); };
  const std::vector<ExpertTime> experts = ExpertTimesOf(trace, time_ps);
  std::vector<RankParts> ranks;
  for (const GlobalRank rank : times.ranks()) {
    const RankTimeline timeline = TimelineOf(trace, rank, time_ps);
    const ExpertTime& of_experts = experts[rank];
    ranks.push_back(
        {{.compute_ps = timeline.compute_ps,
          .tensor_ps = timeline.blocking_ps - timeline.expert_ps,
          .expert_ps = timeline.expert_ps - of_experts.alone_ps + of_experts.exchange_ps,
          .data_ps = timeline.exposed_ps,
          .wait_ps = timeline.wait_ps + of_experts.wait_ps,
          .overlap_ps = timeline.beside_ps - timeline.exposed_ps},
         rank});
  }
  return ranks;
}

// Returns how long the ranks of each stage pass micro-batches on at most, in all iterations:
// without what is done once in each.
std::vector<int64_t> PassesOfStages(const Plan& plan, const std::vector<RankParts>& ranks,
                                    int64_t iterations) {
  const RankGroups groups(plan.parallelism);
  const TrainingTimes times_of_plan(plan);
  std::vector<int64_t> passes_ps(plan.parallelism.pipeline());
  for (const auto& [parts, rank] : ranks) {
    const uint32_t stage = groups.PlaceOf(rank)[static_cast<size_t>(Dimension::kPipeline)];
    const StageWeights weights(plan, stage);
    const int64_t once_ps =
        times_of_plan.ZeroGradientsPs(weights) + times_of_plan.OptimizerPs(weights);
    passes_ps[stage] =
        std::max(passes_ps[stage], parts.compute_ps + parts.tensor_ps + parts.expert_ps +
                                       parts.wait_ps - iterations * once_ps);
  }
  return passes_ps;
}

// Returns the time of one micro-batch's transfer over one boundary: the longest that any rank
// sends.
int64_t TransferPs(const Trace& trace, const CallTimes& times) {
  int64_t longest_ps = 0;
  for (const GlobalRank rank : times.ranks()) {
    ForEachCall(trace, rank, [&](const PlannedCall& call) {
      if (call.kind != CollectiveKind::kSend) return;
      longest_ps = std::max(longest_ps, times.TimePs(call));
    });
  }
  return longest_ps;
}

}  // namespace

EstimateResult EstimatePlan(const Plan& plan, const Trace& trace, const CallTimes& times) {
  const std::vector<RankParts> ranks = PartsOfRanks(trace, times);
  RankParts longest;
  for (const RankParts& of_rank : ranks) {
    if (of_rank.parts.total_ps() > longest.parts.total_ps()) longest = of_rank;
  }
  EstimateResult estimate{.parts = longest.parts, .rank = longest.rank};
  const auto* const training = std::get_if<Training>(&plan.job);
  if (training != nullptr) estimate.iterations = training->iterations;
  const int64_t stages = plan.parallelism.pipeline();
  if (training == nullptr || plan.layered || stages == 1) return estimate;

  const int64_t iterations = training->iterations;
  const int64_t micro_batches = training->micro_batches;
  const int64_t chunks = training->virtual_stages;
  const std::vector<int64_t> passes_ps = PassesOfStages(plan, ranks, iterations);
  const uint32_t own =
      RankGroups(plan.parallelism).PlaceOf(longest.rank)[static_cast<size_t>(Dimension::kPipeline)];
  const int64_t of_others_ps =
      std::accumulate(passes_ps.begin(), passes_ps.end(), int64_t{0}) - passes_ps[own];
  const int64_t share = training->schedule == PipelineScheduleKind::kZeroBubble ? 3 : chunks;
  estimate.parts.bubble_ps = of_others_ps / micro_batches / share;
  const int64_t transfers = training->schedule == PipelineScheduleKind::kInterleaved
                                ? 2 * (stages * chunks - 1)
                                : 2 * (stages - 1) *
                                      static_cast<int64_t>(DivideUp(training->micro_batches,
                                                                    plan.parallelism.pipeline()));
  estimate.parts.pipeline_ps = iterations * transfers * TransferPs(trace, times);
  return estimate;
}

}  // namespace railyard
