// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/stage_weights.h"

#include <algorithm>

#include "workloads/plans/pipeline_schedule.h"

namespace railyard {

StageWeights::StageWeights(const Plan& plan, uint32_t stage)
    : model_(plan.model), parts_(plan.parallelism), stage_(stage) {
  for (const uint32_t layer : {0u, model_.layers - 1}) layers_[Kind(layer)] = UnitOf(layer);
  FillEnds();
  const uint32_t chunks = std::get<Training>(plan.job).virtual_stages;
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const auto [first, end] = LayersOf(plan, chunk * parts_.pipeline() + stage_);
    for (uint32_t layer = first; layer < end; ++layer) {
      AddToStage(Layer(layer));
      for (const uint64_t expert : Layer(layer).experts) expert_elements_ += expert;
    }
  }
  if (stage_ == 0) AddToStage(embedding_);
  if (IsLastStage()) AddToStage(output_);
}

void StageWeights::Add(const Weight& weight, std::vector<uint64_t>& part, WeightUnit& unit) const {
  const uint64_t tensor = parts_.tensor();
  const uint64_t share = weight.split ? (weight.elements + tensor - 1) / tensor : weight.elements;
  part.push_back(share);
  unit.elements += share;
  if (!weight.split) unit.whole_elements += weight.elements;
}

LayerUnit StageWeights::UnitOf(uint32_t layer) const {
  LayerUnit unit;
  for (const Weight& weight : LayerWeights(model_, layer)) {
    if (parts_.expert > 1 && weight.use == WeightUse::kRoutedExpert) {
      if (unit.experts.size() < model_.experts->count / parts_.expert) {
        unit.experts.push_back(weight.elements);
      }
      continue;
    }
    Add(weight, weight.use == WeightUse::kAttention ? unit.attention : unit.feed_forward, unit);
  }
  // The backward pass comes to the last first.
  std::reverse(unit.attention.begin(), unit.attention.end());
  std::reverse(unit.feed_forward.begin(), unit.feed_forward.end());
  return unit;
}

void StageWeights::FillEnds() {
  for (const Weight& weight : EmbeddingWeights(model_)) {
    Add(weight, embedding_.weights, embedding_);
  }
  for (const Weight& weight : OutputWeights(model_)) Add(weight, output_.weights, output_);
  // The last stage's own copy of a tied embedding.
  if (IsTied() && IsLastStage()) {
    Add(EmbeddingWeights(model_).front(), output_.weights, output_);
  }
  std::reverse(embedding_.weights.begin(), embedding_.weights.end());
  std::reverse(output_.weights.begin(), output_.weights.end());
}

void StageWeights::AddToStage(const WeightUnit& unit) {
  elements_ += unit.elements;
  whole_elements_ += unit.whole_elements;
}

}  // namespace railyard
