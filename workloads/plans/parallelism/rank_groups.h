// SPDX-License-Identifier: GPL-2.0-only
// Maps the ranks of a job to their places in a parallel plan.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/plans/plan/plan.h"

namespace railyard {

// Holds a rank's index along each Dimension.
using PlanPlace = std::array<uint32_t, kDimensionCount>;

class RankGroups {
 public:
  // `parallelism` must outlive this.
  explicit RankGroups(const Parallelism& parallelism);

  uint32_t rank_count() const { return static_cast<uint32_t>(place_of_.size()); }
  GlobalRank RankAt(const PlanPlace& place) const;
  const PlanPlace& PlaceOf(GlobalRank rank) const { return place_of_[rank]; }
  // Returns the ranks that differ from that place along `dimension` only, by their index there.
  std::vector<GlobalRank> GroupOf(const PlanPlace& place, Dimension dimension) const;
  // Returns the ranks that differ along `inner` and `outer` only, by their index along `outer`,
  // then `inner`.
  std::vector<GlobalRank> GroupOf(const PlanPlace& place, Dimension inner, Dimension outer) const;

  // Holds the expert-parallel group of a place within its stage, and the place within the group:
  // groups are `expert` consecutive places, counted along tensor, then context, then data.
  struct ExpertPlace {
    uint32_t group = 0;
    uint32_t place = 0;
  };
  ExpertPlace ExpertPlaceOf(const PlanPlace& place) const;
  // ExpertGroupOf() returns the ranks of that place's expert-parallel group, ExpertDataGroupOf()
  // the ranks of its stage that hold the same experts, by group.
  std::vector<GlobalRank> ExpertGroupOf(const PlanPlace& place) const;
  std::vector<GlobalRank> ExpertDataGroupOf(const PlanPlace& place) const;

 private:
  GlobalRank RankInStage(PlanPlace place, const ExpertPlace& expert) const;

  const Parallelism& parallelism_;
  std::vector<PlanPlace> place_of_;  // by rank
};

}  // namespace railyard
