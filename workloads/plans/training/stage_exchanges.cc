// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/stage_exchanges.h"

#include "workloads/plans/parallelism/pipeline_schedule.h"

namespace railyard {

StageExchanges::StageExchanges(const Plan& plan, uint32_t stage, uint32_t group)
    : layer_index_(plan.model.layers) {
  const auto& training = std::get<Training>(plan.job);
  const Parallelism& parts = plan.parallelism;
  std::vector<uint32_t> layers;
  for (uint32_t chunk = 0; chunk < training.virtual_stages; ++chunk) {
    const auto [first, end] = LayersOf(plan, chunk * parts.pipeline() + stage);
    for (uint32_t layer = first; layer < end; ++layer) {
      if (!plan.model.HasExperts(layer)) continue;
      layer_index_[layer] = layers.size();
      layers.push_back(layer);
    }
  }
  layers_ = layers.size();
  micro_batches_ = training.micro_batches;
  const std::vector<uint64_t> tokens_of(parts.expert, plan.MicroBatchTokens() / parts.tensor());
  for (uint32_t iteration = 0; iteration < training.iterations; ++iteration) {
    for (uint32_t micro_batch = 0; micro_batch < micro_batches_; ++micro_batch) {
      for (const uint32_t layer : layers) {
        exchanges_.push_back(RouteTokens(plan, {group, iteration, micro_batch, layer}, tokens_of));
      }
    }
  }
}

const ExpertExchange& StageExchanges::At(uint32_t iteration, uint32_t micro_batch,
                                         uint32_t layer) const {
  return exchanges_[(size_t{iteration} * micro_batches_ + micro_batch) * layers_ +
                    layer_index_[layer]];
}

}  // namespace railyard
