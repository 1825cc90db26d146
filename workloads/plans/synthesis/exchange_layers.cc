// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/synthesis/exchange_layers.h"

#include <algorithm>
#include <variant>

#include "workloads/plans/inference/inference_schedule.h"
#include "workloads/plans/inference/inference_stage.h"
#include "workloads/plans/parallelism/rank_groups.h"
#include "workloads/plans/training/stage_program.h"

namespace railyard {

ExchangeLayers::ExchangeLayers(const Plan& plan) {
  if (plan.layered || plan.parallelism.expert == 1) return;
  const RankGroups groups(plan.parallelism);
  for (GlobalRank rank{0}; rank < groups.rank_count(); ++rank) {
    stage_of_rank_.push_back(groups.PlaceOf(rank)[static_cast<size_t>(Dimension::kPipeline)]);
  }
  if (std::holds_alternative<Training>(plan.job)) {
    AddTraining(plan);
  } else if (std::holds_alternative<Inference>(plan.job)) {
    AddInference(plan);
  }
}

ExchangeLayers::OfRank ExchangeLayers::Of(GlobalRank rank) const {
  static const std::vector<uint32_t> kNoLayers;
  if (rank >= stage_of_rank_.size()) return {kNoLayers, 0};  // it does nothing but prefill
  return {of_stage_[stage_of_rank_[rank]], count_of_rank_[rank]};
}

void ExchangeLayers::AddTraining(const Plan& plan) {
  for (uint32_t stage = 0; stage < plan.parallelism.pipeline(); ++stage) {
    of_stage_.push_back(ExchangedLayers(plan, stage));
  }
  const size_t iterations = std::get<Training>(plan.job).iterations;
  for (const uint32_t stage : stage_of_rank_) {
    count_of_rank_.push_back(of_stage_[stage].size() * iterations);
  }
}

// In each pass in which a group has tokens, each of the stage's layers with experts dispatches and
// combines.
void ExchangeLayers::AddInference(const Plan& plan) {
  const size_t steps = plan.routing.hierarchical_groups_of == 0 ? 1 : 2;
  for (uint32_t stage = 0; stage < plan.parallelism.pipeline(); ++stage) {
    const auto [first, end] = InferenceLayersOf(plan, stage);
    std::vector<uint32_t>& layers = of_stage_.emplace_back();
    for (uint32_t layer = first; layer < end; ++layer) {
      if (plan.model.HasExperts(layer)) layers.insert(layers.end(), 2 * steps, layer);
    }
  }
  const InferenceSchedule schedule = ScheduleInference(plan);
  std::vector<size_t> passes_of_group(plan.parallelism.ExpertGroups());
  for (uint32_t group = 0; group < passes_of_group.size(); ++group) {
    for (uint32_t pass = 0; pass < InferenceExchanges::PassCount(schedule); ++pass) {
      const std::vector<uint64_t> tokens =
          InferenceExchanges::TokensOf(plan, schedule, group, pass);
      if (std::ranges::any_of(tokens, [](uint64_t of_place) { return of_place > 0; })) {
        ++passes_of_group[group];
      }
    }
  }
  const RankGroups groups(plan.parallelism);
  for (GlobalRank rank{0}; rank < groups.rank_count(); ++rank) {
    const uint32_t group = groups.ExpertPlaceOf(groups.PlaceOf(rank)).group;
    count_of_rank_.push_back(of_stage_[stage_of_rank_[rank]].size() * passes_of_group[group]);
  }
}

}  // namespace railyard
