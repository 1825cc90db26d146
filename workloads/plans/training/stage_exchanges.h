// SPDX-License-Identifier: GPL-2.0-only
// Computes the exchanges of an expert-parallel group of a pipeline stage in training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/plans/parallelism/expert_traffic.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

class StageExchanges {
 public:
  // Preconditions: the plan's job is a Training, and `stage` is below its pipeline degree.
  StageExchanges(const Plan& plan, uint32_t stage, uint32_t group);
  // Returns the exchange of a pass. Precondition: the layer belongs to the stage and has experts.
  const ExpertExchange& At(uint32_t iteration, uint32_t micro_batch, uint32_t layer) const;
  const std::vector<ExpertExchange>& all() const { return exchanges_; }

 private:
  size_t layers_ = 0;
  uint32_t micro_batches_ = 0;
  std::vector<size_t> layer_index_;  // by layer of the model
  std::vector<ExpertExchange> exchanges_;
};

}  // namespace railyard
