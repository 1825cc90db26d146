// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/logged_graph.h"

#include <algorithm>
#include <utility>

namespace railyard {
namespace {

// Returns whether `of` has channels 0, 1, … up to `count`, and no others.
template <typename Value>
bool HasChannels(const std::map<uint32_t, Value>& of, size_t count) {
  return of.size() == count && (count == 0 || of.rbegin()->first == count - 1);
}

std::vector<std::vector<uint32_t>> RingsByRank(std::span<const LoggedGraph* const> by_rank) {
  const size_t channels = by_rank.front()->next.size();
  for (const LoggedGraph* graph : by_rank) {
    if (graph == nullptr || !HasChannels(graph->next, channels)) return {};
  }
  std::vector<std::vector<uint32_t>> rings(channels);
  for (uint32_t channel = 0; channel < channels; ++channel) {
    uint32_t rank = 0;
    for (size_t i = 0; i < by_rank.size() && rank < by_rank.size(); ++i) {
      rings[channel].push_back(rank);
      rank = by_rank[rank]->next.at(channel);
    }
    if (rank != 0 || !IsRing(rings[channel], by_rank.size())) return {};
  }
  return rings;
}

}  // namespace

bool IsRing(const std::vector<uint32_t>& ring, size_t size) {
  if (ring.size() != size || ring.empty() || ring.front() != 0) return false;
  std::vector<bool> is_there(size);
  for (const uint32_t rank : ring) {
    if (rank >= size || is_there[rank]) return false;
    is_there[rank] = true;
  }
  return true;
}

bool IsTree(const std::vector<int32_t>& parents, size_t size) {
  if (parents.size() != size) return false;
  std::vector<uint32_t> children(size);
  size_t roots = 0;
  for (const int32_t parent : parents) {
    if (parent < -1 || parent >= static_cast<int64_t>(size)) return false;
    if (parent == -1) {
      ++roots;
    } else if (++children[static_cast<uint32_t>(parent)] > kTreeChildrenMax) {
      return false;
    }
  }
  // With one root, a rank that does not lead to it is in a circle.
  std::vector<bool> leads_to_root(size);
  for (uint32_t rank = 0; rank < size && roots == 1; ++rank) {
    std::vector<uint32_t> way;
    int32_t at = static_cast<int32_t>(rank);
    while (at != -1 && !leads_to_root[static_cast<uint32_t>(at)]) {
      if (way.size() == size) return false;
      way.push_back(static_cast<uint32_t>(at));
      at = parents[static_cast<uint32_t>(at)];
    }
    for (const uint32_t passed : way) leads_to_root[passed] = true;
  }
  return roots == 1;
}

std::vector<std::vector<uint32_t>> RingsOf(std::span<const LoggedGraph* const> by_rank) {
  if (by_rank.empty() || by_rank.front() == nullptr) return {};
  const LoggedGraph& first = *by_rank.front();
  if (!first.next.empty()) {
    std::vector<std::vector<uint32_t>> rings = RingsByRank(by_rank);
    if (!rings.empty()) return rings;
  }
  if (!HasChannels(first.rings, first.ring_count)) return {};
  std::vector<std::vector<uint32_t>> rings;
  for (const auto& [channel, ring] : first.rings) {
    if (!IsRing(ring, by_rank.size())) return {};
    rings.push_back(ring);
  }
  return rings;
}

std::vector<std::vector<int32_t>> TreeParentsOf(std::span<const LoggedGraph* const> by_rank) {
  if (by_rank.empty() || by_rank.front() == nullptr) return {};
  const size_t channels = by_rank.front()->parent.size();
  std::vector<std::vector<int32_t>> trees(channels);
  for (const LoggedGraph* graph : by_rank) {
    if (graph == nullptr || !HasChannels(graph->parent, channels)) return {};
    for (const auto& [channel, parent] : graph->parent) trees[channel].push_back(parent);
  }
  const auto is_tree = [&](const auto& parents) { return IsTree(parents, by_rank.size()); };
  if (!std::all_of(trees.begin(), trees.end(), is_tree)) return {};
  return trees;
}

}  // namespace railyard
