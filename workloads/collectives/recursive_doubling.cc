// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/recursive_doubling.h"

#include <bit>

namespace railyard {

std::shared_ptr<const ExplicitAlgorithm> MakeRecursiveDoubling(const AlgorithmRequest& request) {
  const uint32_t ranks = request.rank_count;
  if (request.kind != CollectiveKind::kAllReduce || ranks < 2 || !std::has_single_bit(ranks)) {
    return nullptr;
  }
  auto algorithm = std::make_shared<ExplicitAlgorithm>();
  algorithm->kind = request.kind;
  algorithm->rank_count = ranks;
  for (RankIndex rank{0}; rank < ranks; ++rank) {
    std::vector<ExplicitStep> steps;
    const auto peer_of = [&](uint32_t distance) { return static_cast<int32_t>(rank ^ distance); };
    // The first send is of the rank's own data; each later one of what it has just added up.
    steps.push_back({.step = {.send_to = peer_of(1), .load_local = true, .keep = true}});
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
      const bool is_last = 2 * distance == ranks;
      steps.push_back({.step = {.recv_from = peer_of(distance),
                                .send_to = is_last ? kNoPeer : peer_of(2 * distance),
                                .load_kept = true,
                                .reduce = true,
                                .keep = !is_last,
                                .store = is_last}});
    }
    algorithm->lanes[{rank, 0}].push_back(std::move(steps));
  }
  return algorithm;
}

}  // namespace railyard
