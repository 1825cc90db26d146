// SPDX-License-Identifier: GPL-2.0-only
// Computes the times of one GPU's computation in training: the parts of the model for one
// micro-batch, and the optimizer. They are given in the plan or computed from the work.
#pragma once

#include <array>
#include <cstdint>

#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/parallelism/expert_traffic.h"
#include "workloads/plans/plan/plan.h"
#include "workloads/plans/training/stage_weights.h"

namespace railyard {

class TrainingTimes {
 public:
  // `plan` must outlive this.
  explicit TrainingTimes(const Plan& plan);

  // These return times of the forward pass, without adapters.
  int64_t attention_ps() const { return attention_ps_; }
  int64_t embedding_ps() const { return embedding_ps_; }
  int64_t output_ps() const { return output_ps_; }
  // Returns the time of a layer without experts, or whose experts are not divided.
  int64_t FeedForwardPs(uint32_t layer) const {
    return feed_forward_ps_[plan_.model.HasExperts(layer) ? 1 : 0];
  }
  // These return times of a layer with divided experts: the router and the shared expert, which
  // tensor parallelism divides; and the routed experts of the rank at that place. A time that the
  // plan gives is that of the mean load.
  int64_t SharedPs() const;
  int64_t RoutedPs(const ExpertExchange& exchange, uint32_t place) const;

  // Returns the time of the gradients of a part's inputs, or of its weights.
  int64_t GradientPs(int64_t forward_ps) const;

  // Returns the forward time of a layer's adapters in its attention or its feed-forward network; 0
  // if the layer has none, or if times are given, which include them.
  int64_t AdapterPs(uint32_t layer, WeightUse use) const;

  // These return times per iteration of a rank that holds these weights: for the optimizer's step,
  // and for zeroing the gradients before it.
  int64_t OptimizerPs(const StageWeights& weights) const;
  int64_t ZeroGradientsPs(const StageWeights& weights) const;

 private:
  int64_t TimeOf(const Work& work) const;

  const Plan& plan_;
  const LayerWork last_layer_;  // which has experts if any layer has
  int64_t attention_ps_ = 0;
  std::array<int64_t, 2> feed_forward_ps_{};  // of layers without experts, and with experts
  std::array<int64_t, 2> adapter_ps_{};       // of attention, of the feed-forward network
  int64_t embedding_ps_ = 0;
  int64_t output_ps_ = 0;
  double backward_ratio_ = 2;  // gradients of inputs and of weights, each a forward pass
};

}  // namespace railyard
