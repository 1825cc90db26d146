// SPDX-License-Identifier: GPL-2.0-only
// The weights that a rank of a pipeline stage holds, in elements: its share of those that tensor
// parallelism divides, all of the others, and the experts that are its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/plans/plan.h"

namespace railyard {

// Weights that are gathered together with ZeRO 3.
struct WeightUnit {
  uint64_t elements = 0;
  uint64_t whole_elements = 0;  // that the tensor group does not divide
};
struct LayerUnit : WeightUnit {
  std::vector<uint64_t> attention;  // by weight, in the order of the backward pass
  std::vector<uint64_t> feed_forward;
  std::vector<uint64_t> experts;  // of this rank, with expert parallelism; not in `elements`
};
struct EndUnit : WeightUnit {
  std::vector<uint64_t> weights;  // likewise
};

class StageWeights {
 public:
  // `plan` must outlive this.
  StageWeights(const Plan& plan, uint32_t stage);

  const LayerUnit& Layer(uint32_t layer) const { return layers_[Kind(layer)]; }
  const EndUnit& embedding() const { return embedding_; }
  const EndUnit& output() const { return output_; }

  // Of all that the stage holds, but divided experts.
  uint64_t elements() const { return elements_; }
  uint64_t expert_elements() const { return expert_elements_; }  // of these
  uint64_t whole_elements() const { return whole_elements_; }

  // Whether the stage has one of the two copies of a tied embedding.
  bool HasTiedEmbedding() const { return IsTied() && (stage_ == 0 || IsLastStage()); }

 private:
  bool IsLastStage() const { return stage_ + 1 == parts_.pipeline(); }
  bool IsTied() const { return model_.tied_embeddings && parts_.pipeline() > 1; }
  size_t Kind(uint32_t layer) const { return model_.HasExperts(layer) ? 1 : 0; }

  void Add(const Weight& weight, std::vector<uint64_t>& part, WeightUnit& unit) const;
  LayerUnit UnitOf(uint32_t layer) const;
  void FillEnds();
  void AddToStage(const WeightUnit& unit);

  const ModelConfig& model_;
  const Parallelism& parts_;
  const uint32_t stage_;
  std::array<LayerUnit, 2> layers_;  // by Kind
  EndUnit embedding_;
  EndUnit output_;
  uint64_t elements_ = 0;
  uint64_t expert_elements_ = 0;
  uint64_t whole_elements_ = 0;
};

}  // namespace railyard
