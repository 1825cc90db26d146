// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/communicator_layout.h"

#include <algorithm>

namespace railyard {

uint32_t CommunicatorLayout::node_count() const {
  uint32_t count = 0;
  for (const RankPlace& place : ranks) count = std::max(count, place.node + 1);
  return count;
}

std::vector<std::vector<RankIndex>> RanksByNode(const CommunicatorLayout& layout) {
  std::vector<std::vector<RankIndex>> nodes(layout.node_count());
  for (RankIndex rank{0}; rank < layout.ranks.size(); ++rank) {
    nodes[layout.ranks[rank].node].push_back(rank);
  }
  for (auto& ranks : nodes) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](RankIndex a, RankIndex b) {
      return layout.ranks[a].local_index < layout.ranks[b].local_index;
    });
  }
  return nodes;
}

}  // namespace railyard
