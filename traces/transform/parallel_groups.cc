// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/parallel_groups.h"

#include <algorithm>
#include <map>

namespace railyard {

Place PlaceOf(const TraceDivision& division, GlobalRank rank) {
  return {.tensor = rank % division.tensor,
          .data = rank / division.tensor % division.data,
          .stage = rank / division.tensor / division.data};
}

GlobalRank RankOf(const TraceDivision& division, const Place& place) {
  return GlobalRank{place.tensor + division.tensor * (place.data + division.data * place.stage)};
}

std::vector<GlobalRank> GroupRanks(GroupKind kind, const TraceDivision& division,
                                   const Place& place) {
  std::vector<GlobalRank> ranks;
  const auto add = [&](const Place& member) { ranks.push_back(RankOf(division, member)); };
  switch (kind) {
    case GroupKind::kTensor:
      for (uint32_t i = 0; i < division.tensor; ++i) add({i, place.data, place.stage});
      break;
    case GroupKind::kData:
      for (uint32_t i = 0; i < division.data; ++i) add({place.tensor, i, place.stage});
      break;
    case GroupKind::kExpert: {
      const uint32_t first = place.data / division.expert * division.expert;
      for (uint32_t i = 0; i < division.expert; ++i) add({place.tensor, first + i, place.stage});
      break;
    }
    case GroupKind::kExpertData:
      for (uint32_t i = place.data % division.expert; i < division.data; i += division.expert) {
        add({place.tensor, i, place.stage});
      }
      break;
    case GroupKind::kStages:
      for (uint32_t i = 0; i < division.pipeline; ++i) add({place.tensor, place.data, i});
      break;
    case GroupKind::kAll:
    case GroupKind::kOther:
      for (GlobalRank i{0}; i < division.ranks(); ++i) ranks.push_back(i);
      break;
  }
  return ranks;
}

ParallelGroups::ParallelGroups(const Trace& trace, const TraceDivision& division)
    : trace_(trace), division_(division) {
  if (division.ranks() != trace.rank_count || division.expert == 0 ||
      division.data % division.expert != 0) {
    return;
  }
  // Calls of experts exchange tokens; those of data parallel ranks sum gradients or share weights.
  std::vector<bool> exchanges_only(trace.communicators.size(), true);
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    for (const TraceOperation& operation : trace.operations[rank]) {
      if (operation.kind == CollectiveKind::kCompute || IsSendOrRecv(operation.kind)) continue;
      if (operation.kind == CollectiveKind::kAllToAll) continue;
      exchanges_only[trace.CommunicatorOf(rank, operation.communicator)] = false;
    }
  }
  std::map<std::vector<GlobalRank>, uint32_t> of_same_ranks;
  for (uint32_t i = 0; i < trace.communicators.size(); ++i) {
    kinds_.push_back(Classify(i, exchanges_only[i]));
    numbers_.push_back(of_same_ranks[trace.communicators[i].ranks]++);
  }
}

GroupKind ParallelGroups::Classify(uint32_t communicator, bool exchanges_only) const {
  const std::vector<GlobalRank>& ranks = trace_.communicators[communicator].ranks;
  const Place first = PlaceOf(division_, ranks.front());
  const auto is = [&](GroupKind kind) { return ranks == GroupRanks(kind, division_, first); };
  // With one degree alone a group is of all ranks as well: it counts as that degree's. If all data
  // parallel ranks share the experts, what is only exchanged are tokens.
  if (division_.expert > 1 && is(GroupKind::kExpert) &&
      (division_.expert < division_.data || exchanges_only)) {
    return GroupKind::kExpert;
  }
  if (division_.data > 1 && is(GroupKind::kData)) return GroupKind::kData;
  if (division_.expert > 1 && division_.expert < division_.data && is(GroupKind::kExpertData)) {
    return GroupKind::kExpertData;
  }
  if (division_.tensor > 1 && is(GroupKind::kTensor)) return GroupKind::kTensor;
  if (division_.pipeline > 1 && is(GroupKind::kStages)) return GroupKind::kStages;
  if (is(GroupKind::kAll)) return GroupKind::kAll;
  const bool joins_stages = std::all_of(ranks.begin(), ranks.end(), [&](GlobalRank rank) {
    const Place place = PlaceOf(division_, rank);
    return place.tensor == first.tensor && place.data == first.data;
  });
  return joins_stages ? GroupKind::kStages : GroupKind::kOther;
}

int32_t ParallelGroups::StagesTo(GlobalRank rank, const TraceOperation& message) const {
  const uint32_t communicator = trace_.CommunicatorOf(rank, message.communicator);
  const GlobalRank peer = trace_.communicators[communicator].ranks[message.peer];
  return static_cast<int32_t>(PlaceOf(division_, peer).stage) -
         static_cast<int32_t>(PlaceOf(division_, rank).stage);
}

bool ParallelGroups::AreAlike(GlobalRank a, const TraceOperation& x, GlobalRank b,
                              const TraceOperation& y) const {
  if (x.kind != y.kind || x.count != y.count || x.datatype != y.datatype || x.root != y.root ||
      x.stream != y.stream || x.after != y.after || x.begins_iteration != y.begins_iteration) {
    return false;
  }
  if (x.kind == CollectiveKind::kCompute) return true;
  const uint32_t of_x = trace_.CommunicatorOf(a, x.communicator);
  const uint32_t of_y = trace_.CommunicatorOf(b, y.communicator);
  if (kinds_[of_x] != kinds_[of_y] || numbers_[of_x] != numbers_[of_y]) return false;
  if (!IsSendOrRecv(x.kind)) return true;
  // Stages have different places in a communicator of all of them.
  return kinds_[of_x] == GroupKind::kStages ? StagesTo(a, x) == StagesTo(b, y) : x.peer == y.peer;
}

bool ParallelGroups::AreAlike(GlobalRank a, GlobalRank b) const {
  const auto& x = trace_.operations[a];
  const auto& y = trace_.operations[b];
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [&](const TraceOperation& of_a, const TraceOperation& of_b) {
                      return AreAlike(a, of_a, b, of_b);
                    });
}

}  // namespace railyard
