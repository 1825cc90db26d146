// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace railyard {

// An edge between two vertices, of a weight above 0.
struct WeightedEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t weight = 0;
};

// Returns the edges, as vertices in ascending order, of a matching whose weights have the greatest
// sum. If several matchings have it, the result is always the same one of them. Preconditions:
// vertices are below `vertex_count`, and no weight exceeds 2^60. It takes a tenth of a second for
// all pairs of 512.
std::vector<std::pair<uint32_t, uint32_t>> HeaviestMatching(uint32_t vertex_count,
                                                            const std::vector<WeightedEdge>& edges);

}  // namespace railyard
