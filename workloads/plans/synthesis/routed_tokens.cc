// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/synthesis/routed_tokens.h"

#include <numeric>
#include <variant>
#include <vector>

#include "workloads/plans/inference/inference_stage.h"
#include "workloads/plans/training/stage_exchanges.h"

namespace railyard {
namespace {

void Add(const std::vector<ExpertExchange>& exchanges, RoutedTokens& routed) {
  for (const ExpertExchange& exchange : exchanges) {
    routed.sent +=
        std::accumulate(exchange.per_expert.begin(), exchange.per_expert.end(), uint64_t{0});
    routed.dropped += exchange.dropped;
  }
}

}  // namespace

RoutedTokens RoutedTokensOf(const Plan& plan) {
  RoutedTokens routed;
  const bool is_training = std::holds_alternative<Training>(plan.job);
  const InferenceSchedule schedule = is_training ? InferenceSchedule{} : ScheduleInference(plan);
  for (uint32_t stage = 0; stage < plan.parallelism.pipeline(); ++stage) {
    for (uint32_t group = 0; group < plan.parallelism.ExpertGroups(); ++group) {
      if (is_training) {
        Add(StageExchanges(plan, stage, group).all(), routed);
      } else {
        Add(InferenceExchanges(plan, schedule, stage, group).all(), routed);
      }
    }
  }
  return routed;
}

}  // namespace railyard
