// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/rank_groups.h"

namespace railyard {

RankGroups::RankGroups(const Parallelism& parallelism)
    : parallelism_(parallelism), place_of_(parallelism.RankCount()) {
  PlanPlace place{};
  for (uint32_t i = 0; i < parallelism.RankCount(); ++i) {
    uint32_t rest = i;
    for (const Dimension dimension : parallelism.order) {
      const auto d = static_cast<size_t>(dimension);
      place[d] = rest % parallelism.parts[d];
      rest /= parallelism.parts[d];
    }
    place_of_[RankAt(place)] = place;
  }
}

uint32_t RankGroups::RankAt(const PlanPlace& place) const {
  uint32_t position = 0;
  uint32_t stride = 1;
  for (const Dimension dimension : parallelism_.order) {
    const auto d = static_cast<size_t>(dimension);
    position += place[d] * stride;
    stride *= parallelism_.parts[d];
  }
  return parallelism_.rank_at.empty() ? position : parallelism_.rank_at[position];
}

std::vector<uint32_t> RankGroups::GroupOf(const PlanPlace& place, Dimension dimension) const {
  const auto d = static_cast<size_t>(dimension);
  std::vector<uint32_t> ranks(parallelism_.parts[d]);
  PlanPlace member = place;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    member[d] = i;
    ranks[i] = RankAt(member);
  }
  return ranks;
}

std::vector<uint32_t> RankGroups::GroupOf(const PlanPlace& place, Dimension inner,
                                          Dimension outer) const {
  std::vector<uint32_t> ranks;
  PlanPlace member = place;
  for (uint32_t i = 0; i < parallelism_.parts[static_cast<size_t>(outer)]; ++i) {
    member[static_cast<size_t>(outer)] = i;
    const std::vector<uint32_t> group = GroupOf(member, inner);
    ranks.insert(ranks.end(), group.begin(), group.end());
  }
  return ranks;
}

}  // namespace railyard
