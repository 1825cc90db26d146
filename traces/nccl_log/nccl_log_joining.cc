// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_joining.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

using Group = JoinedCommunicator;

class Joiner {
 public:
  explicit Joiner(PlacementDraft& draft) : draft_(draft) {}

  void Run() {
    std::map<std::tuple<std::string, uint32_t, uint64_t>, uint32_t> by_comm_id;
    const std::set<CommId> shared_ids = FindSharedIds();
    std::map<std::pair<uint32_t, CommId>, uint64_t> uses_of_id;  // by endpoint
    std::map<std::tuple<uint32_t, uint64_t, int64_t, uint32_t>, uint32_t> by_split;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t>
        by_size;  // size, index among the endpoint's of it
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> unnamed_of_endpoint;  // endpoint, size
    // Parents stand before their children, handle by handle.
    for (uint32_t h = 0; h < draft_.logged.handles.size(); ++h) {
      const CommunicatorHandle& handle = draft_.Handle(h);
      const uint32_t size = handle.rank_count;
      const auto parent = handle.parent ? placement_.communicator_of[*handle.parent] : std::nullopt;
      if (!handle.comm_id.empty()) {
        const CommId id{handle.comm_id, size};
        // The order distinguishes splits of one parent; the order in which the endpoint uses the id
        // distinguishes other communicators.
        uint64_t number = uses_of_id[{placement_.endpoint_of[h], id}]++;
        if (parent) number = handle.split_number;
        draft_.PutByKey(h, by_comm_id,
                        {handle.comm_id, size, shared_ids.contains(id) ? number : 0});
      } else if (parent) {
        draft_.PutByKey(h, by_split, {*parent, handle.split_number, handle.color, size});
      } else {
        const uint32_t number = unnamed_of_endpoint[{placement_.endpoint_of[h], size}]++;
        draft_.PutByKey(h, by_size, {size, number});
      }
    }
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      groups_of_size_[placement_.communicators[g].size].push_back(g);
    }
    for (const auto& [key, group] : by_size) JoinedBySize(group);
  }

 private:
  using CommId = std::pair<std::string, uint32_t>;  // and its number of ranks

  // Returns the ids that some endpoint has twice. Where NCCL prints an id for a split, it is made
  // of the parent and the color (init.cc: "%016lx-%d" of commHash and color), so splits may share
  // it.
  std::set<CommId> FindSharedIds() const {
    std::set<std::pair<uint32_t, CommId>> seen;
    std::set<CommId> shared;
    for (uint32_t h = 0; h < draft_.logged.handles.size(); ++h) {
      const CommunicatorHandle& handle = draft_.Handle(h);
      if (handle.comm_id.empty()) continue;
      const CommId id{handle.comm_id, handle.rank_count};
      if (!seen.insert({placement_.endpoint_of[h], id}).second) shared.insert(id);
    }
    return shared;
  }

  // Joins handles of equal size: they are one communicator if they are at most as many as its ranks
  // and no rank occurs twice. It may be one that other processes' lines name.
  void JoinedBySize(uint32_t index) {
    Group& group = placement_.communicators[index];
    std::set<uint32_t> ranks;
    bool distinct = true;
    for (const uint32_t handle : group.handles) {
      const std::optional<uint32_t> rank = draft_.rank_of[handle];
      if (rank) distinct = ranks.insert(*rank).second && distinct;
    }
    if (group.handles.size() > group.size || !distinct) {
      draft_.crowded[index] = true;
      return;
    }
    MergeIntoNamed(index);
    if (group.handles.size() > 1) {
      draft_.Assume(
          fmt::format("the communicators of {} ranks of {} processes are one ({}): no line says "
                      "so, nothing contradicts it",
                      group.size, group.handles.size(), group.name));
    }
  }

  void MergeIntoNamed(uint32_t index) {
    Group& group = placement_.communicators[index];
    const std::vector<uint32_t>& same_size = groups_of_size_[group.size];
    if (same_size.size() != 2) return;
    const uint32_t target = same_size[0] == index ? same_size[1] : same_size[0];
    Group& named = placement_.communicators[target];
    std::set<uint32_t> endpoints;
    for (const uint32_t h : named.handles) endpoints.insert(placement_.endpoint_of[h]);
    for (const uint32_t h : group.handles) {
      if (!endpoints.insert(placement_.endpoint_of[h]).second) return;
    }
    if (endpoints.size() > group.size) return;
    draft_.Assume(
        fmt::format("the communicators of {} ranks of {} processes without Init lines are {}: "
                    "it is the only one of that size",
                    group.size, group.handles.size(), named.name));
    for (const uint32_t h : std::exchange(group.handles, {})) draft_.Put(h, target);
  }

  PlacementDraft& draft_;
  Placement& placement_ = draft_.placement;
  std::map<uint32_t, std::vector<uint32_t>> groups_of_size_;
};

}  // namespace

void JoinHandles(PlacementDraft& draft) { Joiner(draft).Run(); }

}  // namespace railyard
