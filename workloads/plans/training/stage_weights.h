// SPDX-License-Identifier: GPL-2.0-only
// Computes the weights of a rank of a pipeline stage, in elements: its share of those that tensor
// parallelism divides, all of the others, and its own experts; and which of them are trained.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/plans/plan/plan.h"

namespace railyard {

// Describes weights that ZeRO 3 gathers together.
struct WeightUnit {
  uint64_t elements = 0;
  uint64_t trained_elements = 0;
  uint64_t summed_elements = 0;  // of these, those whose gradients the tensor group sums
};
// Describes a layer. The lists hold the trained weights in the order of the backward pass.
struct LayerUnit : WeightUnit {
  std::vector<uint64_t> attention;
  std::vector<uint64_t> feed_forward;
  // The experts of this rank, with expert parallelism; the sums above do not include them.
  std::vector<uint64_t> experts;
  uint64_t expert_elements = 0;  // frozen or not
};
struct EndUnit : WeightUnit {
  std::vector<uint64_t> weights;
};

class StageWeights {
 public:
  // `plan` must outlive this.
  StageWeights(const Plan& plan, uint32_t stage);

  const LayerUnit& Layer(uint32_t layer) const { return *layers_[Kind(layer)]; }
  const EndUnit& embedding() const { return embedding_; }
  const EndUnit& output() const { return output_; }

  // These return the elements that the stage trains: without divided experts; in divided experts;
  // and, of the former, those whose gradients the tensor group sums: each GPU holds them whole, but
  // sees its part of the sequence, or its own heads or columns, alone.
  uint64_t trained_elements() const { return trained_elements_; }
  uint64_t trained_expert_elements() const { return trained_expert_elements_; }
  uint64_t summed_elements() const { return summed_elements_; }

  // Returns all weights of the stage, frozen or not, in the order of the forward pass: those of
  // divided experts, or all others.
  std::vector<uint64_t> Parameters(bool of_experts) const;

  // Returns true if the stage trains one of the two copies of a tied embedding.
  bool TrainsTiedEmbedding() const {
    return IsTied() && !tuning_.FreezesAny() && (stage_ == 0 || IsLastStage());
  }

 private:
  bool IsLastStage() const { return stage_ + 1 == parts_.pipeline(); }
  bool IsTied() const { return model_.tied_embeddings && parts_.pipeline() > 1; }
  // Returns the kind of a layer; layers of one kind have equal weights.
  size_t Kind(uint32_t layer) const {
    return (model_.HasExperts(layer) ? 1 : 0) + (layer >= tuning_.frozen_layers ? 2 : 0);
  }
  bool IsDividedExpert(const Weight& weight) const {
    return parts_.expert > 1 && weight.use == WeightUse::kRoutedExpert;
  }
  uint64_t ShareOf(const Weight& weight) const;
  std::vector<Weight> WeightsOf(uint32_t layer) const;  // adapters last
  std::vector<Weight> WeightsOfOutput() const;

  void Add(const Weight& weight, bool is_trained, std::vector<uint64_t>& trained,
           WeightUnit& unit) const;
  LayerUnit UnitOf(uint32_t layer) const;
  void FillEnds();
  void AddToStage(const WeightUnit& unit);

  const Training& training_;
  const ModelConfig& model_;
  const Parallelism& parts_;
  const FineTuning& tuning_;
  const uint32_t stage_;
  const Plan& plan_;
  std::array<std::optional<LayerUnit>, 4> layers_;  // by Kind
  EndUnit embedding_;
  EndUnit output_;
  uint64_t trained_elements_ = 0;
  uint64_t trained_expert_elements_ = 0;
  uint64_t summed_elements_ = 0;
};

}  // namespace railyard
