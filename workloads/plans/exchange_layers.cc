// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/exchange_layers.h"

#include <variant>

#include "workloads/plans/rank_groups.h"
#include "workloads/plans/stage_program.h"

namespace railyard {

ExchangeLayers::ExchangeLayers(const Plan& plan) {
  if (!std::holds_alternative<Training>(plan.job) || plan.layered || plan.parallelism.expert == 1) {
    return;
  }
  iterations_ = std::get<Training>(plan.job).iterations;
  for (uint32_t stage = 0; stage < plan.parallelism.pipeline(); ++stage) {
    of_stage_.push_back(ExchangedLayers(plan, stage));
  }
  const RankGroups groups(plan.parallelism);
  for (uint32_t rank = 0; rank < groups.rank_count(); ++rank) {
    stage_of_rank_.push_back(groups.PlaceOf(rank)[static_cast<size_t>(Dimension::kPipeline)]);
  }
}

}  // namespace railyard
