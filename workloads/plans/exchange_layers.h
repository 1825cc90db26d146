// SPDX-License-Identifier: GPL-2.0-only
// Which layer of a plan's model each AllToAllv is of.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plans/plan.h"

namespace railyard {

class ExchangeLayers {
 public:
  // It knows layers only where the plan is a training of a transformer with expert parallelism.
  explicit ExchangeLayers(const Plan& plan);
  bool is_known() const { return !of_stage_.empty(); }
  uint32_t iterations() const { return iterations_; }
  // The layer of the model, from 0, of each of a rank's AllToAllvs in an iteration, in the order of
  // its program; its trace lacks those in which the rank sends and receives nothing. Precondition:
  // layers are known.
  const std::vector<uint32_t>& OfRank(uint32_t rank) const {
    return of_stage_[stage_of_rank_[rank]];
  }

 private:
  uint32_t iterations_ = 0;
  std::vector<std::vector<uint32_t>> of_stage_;
  std::vector<uint32_t> stage_of_rank_;
};

}  // namespace railyard
