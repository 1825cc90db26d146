// SPDX-License-Identifier: GPL-2.0-only
// Finds the layer of a plan's model to which each AllToAllv belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/plans/plan/plan.h"

namespace railyard {

class ExchangeLayers {
 public:
  // Layers are known if the plan is that of a transformer with expert parallelism.
  explicit ExchangeLayers(const Plan& plan);
  bool is_known() const { return !of_stage_.empty(); }
  // Describes a rank's AllToAllvs, which cycle through a list of layers in the order of its
  // program; its trace lacks those in which the rank sends and receives nothing.
  struct OfRank {
    const std::vector<uint32_t>& layers;  // of the model, from 0
    size_t count = 0;                     // of all AllToAllvs
  };
  // Returns the AllToAllvs of a rank; the result has none if the rank belongs to no expert-parallel
  // group. Precondition: layers are known.
  OfRank Of(GlobalRank rank) const;

 private:
  void AddTraining(const Plan& plan);
  void AddInference(const Plan& plan);

  std::vector<std::vector<uint32_t>> of_stage_;
  std::vector<uint32_t> stage_of_rank_;
  std::vector<size_t> count_of_rank_;
};

}  // namespace railyard
