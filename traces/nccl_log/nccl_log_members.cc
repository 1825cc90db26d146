// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_members.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

using Group = JoinedCommunicator;

class Members {
 public:
  explicit Members(PlacementDraft& draft) : draft_(draft) {}

  void Find() {
    SplitCrowdedGroups();
    FindCommunicatorRanks();
    FindFamilies();
    FillMembers();
  }

 private:
  // ---- Ranks within communicators. ----

  // Splits equal-sized communicators without names (NCCL up to 2.14 prints no commId) if exactly
  // one regular layout of the ranks agrees with the ranks they print.
  void SplitCrowdedGroups() {
    const auto groups = static_cast<uint32_t>(placement_.communicators.size());
    for (uint32_t g = 0; g < groups; ++g) {
      if (!draft_.crowded[g]) continue;
      const std::vector<uint32_t> strides = StridesOf(placement_.communicators[g]);
      if (strides.size() != 1) continue;
      const uint32_t size = placement_.communicators[g].size;
      const uint32_t stride = strides.front();
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> group_of_tile;
      for (const uint32_t h : std::exchange(placement_.communicators[g].handles, {})) {
        const uint32_t rank = *draft_.EndpointOf(h).rank;
        draft_.PutByKey(h, group_of_tile, {rank / (size * stride), rank % stride});
      }
      draft_.crowded[g] = false;
      draft_.Assume(
          fmt::format("the unnamed communicators of {} ranks are {}, {} ranks apart: the only "
                      "regular layout that agrees with the ranks they print",
                      size, group_of_tile.size(), stride));
    }
  }

  // Distances between the members' global ranks that agree with all ranks the group prints, if it
  // is one of several that tile the job. All must be known.
  std::vector<uint32_t> StridesOf(const Group& group) {
    std::vector<uint32_t> strides;
    if (group.size == 0 || placement_.rank_count % group.size != 0) return strides;
    const auto agrees = [&](uint32_t stride) {
      return std::all_of(group.handles.begin(), group.handles.end(), [&](uint32_t h) {
        return draft_.EndpointOf(h).rank && draft_.rank_of[h] &&
               (*draft_.EndpointOf(h).rank / stride) % group.size == *draft_.rank_of[h];
      });
    };
    const uint32_t tiles = placement_.rank_count / group.size;
    // With one rank each, any stride says the same.
    const uint32_t stride_max = group.size == 1 ? 1 : tiles;
    for (uint32_t divisor = 1; divisor <= tiles / divisor && divisor <= stride_max; ++divisor) {
      if (tiles % divisor != 0) continue;
      if (agrees(divisor)) strides.push_back(divisor);
      const uint32_t other = tiles / divisor;
      if (other != divisor && other <= stride_max && agrees(other)) strides.push_back(other);
    }
    return strides;
  }

  void FindCommunicatorRanks() {
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      Group& group = placement_.communicators[g];
      if (draft_.crowded[g]) {
        for (const uint32_t h : group.handles) {
          Unplace(h, CallDropReason::kAmbiguousCommunicator,
                  fmt::format("several communicators of {} ranks, which no line distinguishes",
                              group.size));
        }
        continue;
      }
      CompleteRanks(group);
      for (const uint32_t h : group.handles) PlaceHandle(h, group);
    }
  }

  void Unplace(uint32_t handle, CallDropReason reason, std::string detail) {
    placement_.unplaced[handle] = {.reason = reason, .detail = std::move(detail)};
  }

  // Assigns communicator ranks that no line states: in the job's communicator they are the global
  // ranks; in a complete one they follow the order of the global ranks.
  void CompleteRanks(const Group& group) {
    std::vector<uint32_t> without;
    bool all_global = true;
    for (const uint32_t h : group.handles) {
      if (!draft_.rank_of[h]) without.push_back(h);
      all_global = all_global && draft_.EndpointOf(h).rank;
    }
    if (without.empty()) return;
    if (group.size == placement_.rank_count) {
      for (const uint32_t h : without) draft_.rank_of[h] = draft_.EndpointOf(h).rank;
      draft_.Assume(fmt::format("ranks in {} are the global ranks", group.name));
    } else if (all_global && without.size() == group.size) {
      std::sort(without.begin(), without.end(), [&](uint32_t a, uint32_t b) {
        return *draft_.EndpointOf(a).rank < *draft_.EndpointOf(b).rank;
      });
      for (uint32_t r = 0; r < without.size(); ++r) draft_.rank_of[without[r]] = r;
      draft_.Assume(fmt::format("ranks in {} follow the order of the global ranks", group.name));
    }
  }

  void PlaceHandle(uint32_t handle, Group& group) {
    const Endpoint& endpoint = draft_.EndpointOf(handle);
    if (!endpoint.rank) {
      Unplace(handle, CallDropReason::kUnknownRank,
              fmt::format("{}: no Init line, rank_map or globalrank gives its rank",
                          draft_.Describe(endpoint)));
    } else if (!draft_.rank_of[handle]) {
      Unplace(handle, CallDropReason::kUnknownRank,
              fmt::format("{}: no line gives its rank in the communicator of {} ranks",
                          draft_.Describe(endpoint), group.size));
    } else if (!group.handle_of_rank.try_emplace(*draft_.rank_of[handle], handle).second) {
      const Endpoint& other = draft_.EndpointOf(group.handle_of_rank[*draft_.rank_of[handle]]);
      draft_.diagnostics.Error(
          draft_.PlaceOf(endpoint), "",
          fmt::format("{} and {} are both rank {} of communicator {} (one process "
                      "per rank; logs of one job only)",
                      draft_.Describe(other), draft_.Describe(endpoint), *draft_.rank_of[handle],
                      group.name));
      Unplace(handle, CallDropReason::kAmbiguousCommunicator, "two processes with the same rank");
    } else {
      placement_.communicator_rank_of[handle] = draft_.rank_of[handle];
    }
  }

  // ---- Families and missing members. ----

  void FindFamilies() {
    std::map<std::tuple<int64_t, uint64_t, uint32_t>, uint32_t> family_of;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> number_of;  // endpoint, size
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      Group& group = placement_.communicators[g];
      if (group.handle_of_rank.empty()) continue;
      uint32_t number = 0;
      for (const auto& [rank, h] : group.handle_of_rank) {
        number = std::max(number, number_of[{placement_.endpoint_of[h], group.size}]++);
      }
      std::tuple<int64_t, uint64_t, uint32_t> key(-1, number, group.size);
      const CommunicatorHandle& first = draft_.Handle(group.handle_of_rank.begin()->second);
      if (first.parent && placement_.communicator_of[*first.parent]) {
        key = {*placement_.communicator_of[*first.parent], first.split_number, group.size};
      }
      const auto [entry, is_new] =
          family_of.try_emplace(key, static_cast<uint32_t>(placement_.families.size()));
      if (is_new) {
        placement_.families.push_back({.size = group.size, .stride = {}, .communicators = {}});
      }
      group.family = entry->second;
      placement_.families[entry->second].communicators.push_back(g);
    }
    for (CommunicatorFamily& family : placement_.families) FindStride(family);
  }

  void FindStride(CommunicatorFamily& family) {
    std::optional<std::vector<uint32_t>> common;
    for (const uint32_t g : family.communicators) {
      Group placed = placement_.communicators[g];
      std::erase_if(placed.handles,
                    [&](uint32_t h) { return !placement_.communicator_rank_of[h]; });
      std::vector<uint32_t> strides = StridesOf(placed);
      std::erase_if(strides, [&](uint32_t stride) { return !IsOneTile(placed, stride); });
      if (!common) {
        common = strides;
      } else {
        std::erase_if(*common, [&](uint32_t stride) {
          return std::find(strides.begin(), strides.end(), stride) == strides.end();
        });
      }
    }
    if (common && common->size() == 1) family.stride = common->front();
  }

  bool IsOneTile(const Group& group, uint32_t stride) {
    std::set<std::pair<uint32_t, uint32_t>> tiles;
    for (const uint32_t h : group.handles) {
      const uint32_t rank = *draft_.EndpointOf(h).rank;
      tiles.insert({rank / (group.size * stride), rank % stride});
    }
    return tiles.size() <= 1;
  }

  void FillMembers() {
    uint64_t members = 0;
    for (Group& group : placement_.communicators) {
      if (group.handle_of_rank.empty()) continue;
      const bool complete = group.handle_of_rank.size() == group.size;
      members += group.size;
      if (members > kTraceMembersMax) {
        draft_.diagnostics.Error(
            {.file = draft_.report.files.front().path, .line = 1, .column = 1}, "",
            fmt::format("the communicators have more than {} ranks in all (import a "
                        "part of the log)",
                        kTraceMembersMax));
        return;
      }
      if (complete) {
        for (const auto& [rank, h] : group.handle_of_rank) {
          group.ranks.push_back(*draft_.EndpointOf(h).rank);
        }
      } else if (group.size == placement_.rank_count) {
        FillJob(group);
      } else if (const auto stride = placement_.families[group.family].stride) {
        FillByStride(group, *stride);
      }
    }
  }

  // The job's communicator: the ranks the log lacks, in order, in the places it lacks.
  void FillJob(Group& group) {
    std::vector<bool> taken(group.size, false);
    for (const auto& [rank, h] : group.handle_of_rank) taken[*draft_.EndpointOf(h).rank] = true;
    // In place first: with ranks equal to global ranks, as is usual, nothing is left to order.
    group.ranks.assign(group.size, UINT32_MAX);
    for (const auto& [rank, h] : group.handle_of_rank) {
      group.ranks[rank] = *draft_.EndpointOf(h).rank;
    }
    for (uint32_t r = 0; r < group.size; ++r) {
      if (group.ranks[r] == UINT32_MAX && !taken[r]) {
        group.ranks[r] = r;
        taken[r] = true;
      }
    }
    uint32_t next = 0;
    for (uint32_t& rank : group.ranks) {
      if (rank != UINT32_MAX) continue;
      while (taken[next]) ++next;
      rank = next++;
    }
  }

  void FillByStride(Group& group, uint32_t stride) {
    const uint32_t known = *draft_.EndpointOf(group.handle_of_rank.begin()->second).rank;
    const uint32_t first = known / (group.size * stride) * (group.size * stride) + known % stride;
    for (const auto& [rank, h] : group.handle_of_rank) {
      const uint32_t there = *draft_.EndpointOf(h).rank;
      if (there != first + rank * stride) return;  // not a tile: members unknown
    }
    for (uint32_t r = 0; r < group.size; ++r) group.ranks.push_back(first + r * stride);
    draft_.Assume(
        fmt::format("{} is ranks {} to {}, every {}: the only regular layout that agrees with "
                    "the ranks the log holds",
                    group.name, first, group.ranks.back(), stride));
  }

  PlacementDraft& draft_;
  Placement& placement_ = draft_.placement;
};

}  // namespace

void FindMembers(PlacementDraft& draft) { Members(draft).Find(); }

}  // namespace railyard
