// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/rank_groups.h"

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

GlobalRank RankGroups::RankAt(const PlanPlace& place) const {
  uint32_t position = 0;
  uint32_t stride = 1;
  for (const Dimension dimension : parallelism_.order) {
    const auto d = static_cast<size_t>(dimension);
    position += place[d] * stride;
    stride *= parallelism_.parts[d];
  }
  return GlobalRank{parallelism_.rank_at.empty() ? position : parallelism_.rank_at[position]};
}

std::vector<GlobalRank> RankGroups::GroupOf(const PlanPlace& place, Dimension dimension) const {
  const auto d = static_cast<size_t>(dimension);
  std::vector<GlobalRank> ranks(parallelism_.parts[d]);
  PlanPlace member = place;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    member[d] = i;
    ranks[i] = RankAt(member);
  }
  return ranks;
}

std::vector<GlobalRank> RankGroups::GroupOf(const PlanPlace& place, Dimension inner,
                                            Dimension outer) const {
  std::vector<GlobalRank> ranks;
  PlanPlace member = place;
  for (uint32_t i = 0; i < parallelism_.parts[static_cast<size_t>(outer)]; ++i) {
    member[static_cast<size_t>(outer)] = i;
    const std::vector<GlobalRank> group = GroupOf(member, inner);
    ranks.insert(ranks.end(), group.begin(), group.end());
  }
  return ranks;
}

RankGroups::ExpertPlace RankGroups::ExpertPlaceOf(const PlanPlace& place) const {
  uint32_t index = place[static_cast<size_t>(Dimension::kData)];
  index = index * parallelism_.context() + place[static_cast<size_t>(Dimension::kContext)];
  index = index * parallelism_.tensor() + place[static_cast<size_t>(Dimension::kTensor)];
  return {index / parallelism_.expert, index % parallelism_.expert};
}

GlobalRank RankGroups::RankInStage(PlanPlace place, const ExpertPlace& expert) const {
  uint32_t index = expert.group * parallelism_.expert + expert.place;
  for (const Dimension dimension : {Dimension::kTensor, Dimension::kContext, Dimension::kData}) {
    const auto d = static_cast<size_t>(dimension);
    place[d] = index % parallelism_.parts[d];
    index /= parallelism_.parts[d];
  }
  return RankAt(place);
}

std::vector<GlobalRank> RankGroups::ExpertGroupOf(const PlanPlace& place) const {
  ExpertPlace member = ExpertPlaceOf(place);
  std::vector<GlobalRank> ranks(parallelism_.expert);
  for (member.place = 0; member.place < ranks.size(); ++member.place) {
    ranks[member.place] = RankInStage(place, member);
  }
  return ranks;
}

std::vector<GlobalRank> RankGroups::ExpertDataGroupOf(const PlanPlace& place) const {
  ExpertPlace member = ExpertPlaceOf(place);
  std::vector<GlobalRank> ranks(parallelism_.ExpertGroups());
  for (member.group = 0; member.group < ranks.size(); ++member.group) {
    ranks[member.group] = RankInStage(place, member);
  }
  return ranks;
}

}  // namespace railyard
