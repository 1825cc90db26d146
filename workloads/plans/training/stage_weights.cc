// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/stage_weights.h"

#include <algorithm>
#include <utility>

#include "simulator/units/divide_up.h"
#include "workloads/plans/parallelism/pipeline_schedule.h"

namespace railyard {

StageWeights::StageWeights(const Plan& plan, uint32_t stage)
    : training_(std::get<Training>(plan.job)),
      model_(plan.model),
      parts_(plan.parallelism),
      tuning_(training_.fine_tuning),
      stage_(stage),
      plan_(plan) {
  for (uint32_t layer = 0; layer < model_.layers; ++layer) {
    if (!layers_[Kind(layer)]) layers_[Kind(layer)] = UnitOf(layer);
  }
  FillEnds();
  for (uint32_t chunk = 0; chunk < training_.virtual_stages; ++chunk) {
    const auto [first, end] = LayersOf(plan, chunk * parts_.pipeline() + stage_);
    for (uint32_t layer = first; layer < end; ++layer) {
      AddToStage(Layer(layer));
      for (const uint64_t expert : Layer(layer).experts) trained_expert_elements_ += expert;
    }
  }
  if (stage_ == 0) AddToStage(embedding_);
  if (IsLastStage()) AddToStage(output_);
}

uint64_t StageWeights::ShareOf(const Weight& weight) const {
  if (IsDividedExpert(weight)) return weight.elements;
  return DivideUp(weight.elements, uint64_t{weight.PartsIn(parts_.tensor())});
}

std::vector<Weight> StageWeights::WeightsOf(uint32_t layer) const {
  std::vector<Weight> weights;
  uint32_t experts = 0;  // of this rank, so far
  for (const Weight& weight : LayerWeights(model_, layer)) {
    if (IsDividedExpert(weight) && experts++ >= model_.experts->count / parts_.expert) continue;
    weights.push_back(weight);
  }
  return weights;
}

// Includes the last stage's copy of a tied embedding.
std::vector<Weight> StageWeights::WeightsOfOutput() const {
  std::vector<Weight> weights = OutputWeights(model_);
  if (IsTied() && IsLastStage()) weights.push_back(EmbeddingWeights(model_).front());
  return weights;
}

void StageWeights::Add(const Weight& weight, bool is_trained, std::vector<uint64_t>& trained,
                       WeightUnit& unit) const {
  const uint64_t share = ShareOf(weight);
  unit.elements += share;
  if (!is_trained) return;
  trained.push_back(share);
  unit.trained_elements += share;
  if (weight.parts_max == 1 && (parts_.sequence || weight.is_for_parts)) {
    unit.summed_elements += weight.elements;
  }
}

LayerUnit StageWeights::UnitOf(uint32_t layer) const {
  LayerUnit unit;
  const bool is_trained = tuning_.TrainsBase(layer);
  const auto part_of = [&unit](const Weight& weight) -> std::vector<uint64_t>& {
    return weight.use == WeightUse::kAttention ? unit.attention : unit.feed_forward;
  };
  for (const Weight& weight : WeightsOf(layer)) {
    if (IsDividedExpert(weight)) {
      unit.expert_elements += weight.elements;
      if (is_trained) unit.experts.push_back(weight.elements);
    } else {
      Add(weight, is_trained, part_of(weight), unit);
    }
  }
  if (tuning_.HasAdapters(layer)) {
    for (const Weight& weight : AdapterWeights(model_, *tuning_.lora)) {
      Add(weight, true, part_of(weight), unit);
    }
  }
  // The backward pass comes to the last first.
  std::reverse(unit.attention.begin(), unit.attention.end());
  std::reverse(unit.feed_forward.begin(), unit.feed_forward.end());
  return unit;
}

void StageWeights::FillEnds() {
  for (const Weight& weight : EmbeddingWeights(model_)) {
    Add(weight, !tuning_.FreezesAny(), embedding_.weights, embedding_);
  }
  for (const Weight& weight : WeightsOfOutput()) {
    const bool is_embedding = weight.use == WeightUse::kEmbedding;
    Add(weight, is_embedding ? !tuning_.FreezesAny() : tuning_.TrainsEnds(), output_.weights,
        output_);
  }
  std::reverse(embedding_.weights.begin(), embedding_.weights.end());
  std::reverse(output_.weights.begin(), output_.weights.end());
}

void StageWeights::AddToStage(const WeightUnit& unit) {
  trained_elements_ += unit.trained_elements;
  summed_elements_ += unit.summed_elements;
}

std::vector<uint64_t> StageWeights::Parameters(bool of_experts) const {
  std::vector<uint64_t> parameters;
  const auto add = [&](const std::vector<Weight>& weights) {
    for (const Weight& weight : weights) {
      if (IsDividedExpert(weight) == of_experts) parameters.push_back(ShareOf(weight));
    }
  };
  if (stage_ == 0) add(EmbeddingWeights(model_));
  for (uint32_t chunk = 0; chunk < training_.virtual_stages; ++chunk) {
    const auto [first, end] = LayersOf(plan_, chunk * parts_.pipeline() + stage_);
    for (uint32_t layer = first; layer < end; ++layer) {
      add(WeightsOf(layer));
      if (tuning_.HasAdapters(layer)) add(AdapterWeights(model_, *tuning_.lora));
    }
  }
  if (IsLastStage()) add(WeightsOfOutput());
  return parameters;
}

}  // namespace railyard
