// SPDX-License-Identifier: GPL-2.0-only
// Which rank of the job has which place in a parallel plan.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/plans/plan.h"

namespace railyard {

// A rank's index along each Dimension.
using PlanPlace = std::array<uint32_t, kDimensionCount>;

class RankGroups {
 public:
  // `parallelism` must outlive this.
  explicit RankGroups(const Parallelism& parallelism);

  uint32_t rank_count() const { return static_cast<uint32_t>(place_of_.size()); }
  uint32_t RankAt(const PlanPlace& place) const;
  const PlanPlace& PlaceOf(uint32_t rank) const { return place_of_[rank]; }
  // The ranks that differ from that place along `dimension` only, by their index there.
  std::vector<uint32_t> GroupOf(const PlanPlace& place, Dimension dimension) const;
  // Those that differ along `inner` and `outer` only, by their index along `outer`, then `inner`.
  std::vector<uint32_t> GroupOf(const PlanPlace& place, Dimension inner, Dimension outer) const;

 private:
  const Parallelism& parallelism_;
  std::vector<PlanPlace> place_of_;  // by rank
};

}  // namespace railyard
