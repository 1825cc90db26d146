// SPDX-License-Identifier: GPL-2.0-only
// Compiled as C++17, because LEMON uses what C++20 has removed from allocators.
#include "topologies/generators/weighted_matching.h"

#include <algorithm>

#define LEMON_ONLY_TEMPLATES  // its library is not needed
#include <lemon/matching.h>
#include <lemon/smart_graph.h>

namespace railyard {

std::vector<std::pair<uint32_t, uint32_t>> HeaviestMatching(
    uint32_t vertex_count, const std::vector<WeightedEdge>& edges) {
  using Graph = lemon::SmartGraph;
  using Weights = Graph::EdgeMap<int64_t>;
  Graph graph;
  graph.reserveNode(static_cast<int>(vertex_count));
  graph.reserveEdge(static_cast<int>(edges.size()));
  std::vector<Graph::Node> nodes;
  for (uint32_t i = 0; i < vertex_count; ++i) nodes.push_back(graph.addNode());
  std::vector<Graph::Edge> added;
  Weights weights(graph);
  for (const WeightedEdge& edge : edges) {
    added.push_back(graph.addEdge(nodes[edge.from], nodes[edge.to]));
    weights[added.back()] = edge.weight;
  }
  lemon::MaxWeightedMatching<Graph, Weights> matching(graph, weights);
  matching.run();
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (matching.matching(added[i])) pairs.push_back(std::minmax(edges[i].from, edges[i].to));
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace railyard
