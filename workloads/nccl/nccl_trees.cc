// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_trees.h"

#include <algorithm>
#include <bit>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

// ncclGetBtree. A node's lowest set bit is its level; node 0 is the root and has one child.
TreePlace PlaceInBinaryTree(uint32_t node_count, uint32_t node) {
  TreePlace place;
  const uint32_t bit = node == 0 ? std::bit_ceil(node_count) : node & (~node + 1);
  if (node == 0) {
    if (node_count > 1) place.down[1] = static_cast<int32_t>(bit / 2);
    return place;
  }
  uint32_t up = (node ^ bit) | (bit << 1);
  if (up >= node_count) up = node ^ bit;
  place.up = static_cast<int32_t>(up);
  if (bit == 1) return place;
  place.down[0] = static_cast<int32_t>(node - bit / 2);
  uint32_t step = bit / 2;
  while (step > 0 && node + step >= node_count) step /= 2;
  if (step > 0) place.down[1] = static_cast<int32_t>(node + step);
  return place;
}

// Applies `map` to every node number of a place.
template <typename Map>
TreePlace Renumber(TreePlace place, Map map) {
  const auto renumber = [&](int32_t& node) {
    if (node != kNoPeer) node = static_cast<int32_t>(map(static_cast<uint32_t>(node)));
  };
  renumber(place.up);
  std::for_each(place.down.begin(), place.down.end(), renumber);
  return place;
}

}  // namespace

TreePlace PlaceInDoubleTree(uint32_t node_count, uint32_t node, bool second) {
  SIM_CHECK(node < node_count, "a node that is not in the tree");
  if (!second) return PlaceInBinaryTree(node_count, node);
  if (node_count % 2 == 0) {
    const auto mirror = [node_count](uint32_t x) { return node_count - 1 - x; };
    return Renumber(PlaceInBinaryTree(node_count, mirror(node)), mirror);
  }
  return Renumber(PlaceInBinaryTree(node_count, (node + node_count - 1) % node_count),
                  [node_count](uint32_t x) { return (x + 1) % node_count; });
}

namespace {

// `is_joined`: over the nodes, by double binary trees.
std::vector<std::vector<TreePlace>> BuildPlaces(
    const CommunicatorLayout& layout, uint32_t graph_channels, uint32_t channel_count,
    const std::vector<std::vector<uint32_t>>& mesh_rings, bool is_joined) {
  SIM_CHECK(graph_channels > 0, "no channels to make trees of");
  const auto nodes = RanksByNode(layout);
  const auto node_count = static_cast<uint32_t>(nodes.size());
  // A channel's chain begins at the GPU next to the channel's NIC; in a single server, always at
  // the first.
  const auto head_of = [&](uint32_t channel, uint32_t node) {
    return node_count == 1 ? 0u
                           : channel % graph_channels % static_cast<uint32_t>(nodes[node].size());
  };
  std::vector<std::vector<TreePlace>> trees(channel_count);
  for (uint32_t channel = 0; channel < channel_count; ++channel) {
    std::vector<TreePlace>& tree = trees[channel];
    tree.resize(layout.ranks.size());
    // A node's ranks along the channel's chain.
    const auto rank_at = [&](uint32_t node, uint32_t position) {
      const std::vector<RankIndex>& ranks = nodes[node];
      if (!mesh_rings.empty()) {
        const std::vector<uint32_t>& ring = mesh_rings[channel % graph_channels];
        const auto head = std::find(ring.begin(), ring.end(), head_of(channel, node));
        return ranks[ring[(static_cast<size_t>(head - ring.begin()) + position) % ring.size()]];
      }
      return ranks[(head_of(channel, node) + position) % ranks.size()];
    };
    const auto head_rank = [&](int32_t node) {
      return node == kNoPeer ? kNoPeer
                             : static_cast<int32_t>(rank_at(static_cast<uint32_t>(node), 0));
    };
    const bool second = channel / graph_channels % 2 == 1;
    for (uint32_t node = 0; node < node_count; ++node) {
      for (uint32_t position = 0; position + 1 < nodes[node].size(); ++position) {
        const RankIndex upper = rank_at(node, position);
        const RankIndex lower = rank_at(node, position + 1);
        tree[upper].down[0] = static_cast<int32_t>(lower);
        tree[lower].up = static_cast<int32_t>(upper);
      }
      if (!is_joined) continue;
      const TreePlace among_nodes = PlaceInDoubleTree(node_count, node, second);
      TreePlace& head = tree[rank_at(node, 0)];
      head.up = head_rank(among_nodes.up);
      for (const int32_t child : among_nodes.down) {
        if (child == kNoPeer) continue;
        *std::find(head.down.begin(), head.down.end(), kNoPeer) = head_rank(child);
      }
    }
  }
  return trees;
}

}  // namespace

std::vector<std::vector<TreePlace>> BuildTrees(
    const CommunicatorLayout& layout, uint32_t graph_channels, uint32_t channel_count,
    const std::vector<std::vector<uint32_t>>& mesh_rings) {
  return BuildPlaces(layout, graph_channels, channel_count, mesh_rings, true);
}

std::vector<std::vector<TreePlace>> StatedTrees(const CommunicatorLayout& layout,
                                                uint32_t channel_count) {
  std::vector<std::vector<TreePlace>> trees(channel_count);
  for (uint32_t channel = 0; channel < channel_count; ++channel) {
    const auto& parents = layout.tree_parents[channel % layout.tree_parents.size()];
    std::vector<TreePlace>& tree = trees[channel];
    tree.resize(parents.size());
    for (uint32_t rank = 0; rank < parents.size(); ++rank) {
      tree[rank].up = parents[rank];
      if (parents[rank] == kNoPeer) continue;
      auto& above = tree[static_cast<uint32_t>(parents[rank])].down;
      *std::find(above.begin(), above.end(), kNoPeer) = static_cast<int32_t>(rank);
    }
  }
  return trees;
}

std::vector<std::vector<TreePlace>> BuildChains(
    const CommunicatorLayout& layout, uint32_t graph_channels, uint32_t channel_count,
    const std::vector<std::vector<uint32_t>>& mesh_rings) {
  return BuildPlaces(layout, graph_channels, channel_count, mesh_rings, false);
}

}  // namespace railyard
