// SPDX-License-Identifier: GPL-2.0-only
// Expected values: the Trees lines NCCL prints for 2 x 8 H100, and what makes two binary trees a
// double binary tree (Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", 2009).
#include "workloads/nccl/nccl_trees.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

CommunicatorLayout Servers(uint32_t nodes, uint32_t gpus = 8) {
  CommunicatorLayout layout;
  for (uint32_t node = 0; node < nodes; ++node) {
    for (uint32_t gpu = 0; gpu < gpus; ++gpu) layout.ranks.push_back({node, gpu});
  }
  return layout;
}

uint32_t ChildCount(const TreePlace& place) {
  return static_cast<uint32_t>(
      std::count_if(place.down.begin(), place.down.end(), [](int32_t d) { return d != kNoPeer; }));
}

// Every rank but one has a parent that has it as a child, and all lead to that one.
void ExpectATree(const std::vector<TreePlace>& tree) {
  uint32_t roots = 0;
  uint32_t children = 0;
  for (uint32_t rank = 0; rank < tree.size(); ++rank) {
    children += ChildCount(tree[rank]);
    if (tree[rank].up == kNoPeer) {
      ++roots;
      continue;
    }
    const TreePlace& parent = tree[static_cast<uint32_t>(tree[rank].up)];
    EXPECT_TRUE(std::count(parent.down.begin(), parent.down.end(), static_cast<int32_t>(rank)) == 1)
        << "rank " << rank;
    uint32_t steps = 0;
    for (int32_t at = tree[rank].up; at != kNoPeer; at = tree[static_cast<uint32_t>(at)].up) {
      ASSERT_LT(++steps, tree.size()) << "a cycle above rank " << rank;
    }
  }
  EXPECT_EQ(roots, 1u);
  EXPECT_EQ(children, tree.size() - 1);
}

std::vector<TreePlace> NodeTree(uint32_t nodes, bool second) {
  std::vector<TreePlace> tree;
  for (uint32_t node = 0; node < nodes; ++node) {
    tree.push_back(PlaceInDoubleTree(nodes, node, second));
  }
  return tree;
}

TEST(NcclTrees, OverNodesAreTreesOfTwoChildrenAtMostForAnyNumber) {
  for (uint32_t nodes = 2; nodes <= 300; ++nodes) {
    SCOPED_TRACE(nodes);
    for (const bool second : {false, true}) {
      const std::vector<TreePlace> tree = NodeTree(nodes, second);
      ExpectATree(tree);
      for (const TreePlace& place : tree) EXPECT_LE(ChildCount(place), 2u);
    }
  }
}

TEST(NcclTrees, ALeafOfTheOneIsAnInnerNodeOfTheOther) {
  for (uint32_t nodes = 2; nodes <= 300; nodes += 2) {
    const std::vector<TreePlace> first = NodeTree(nodes, false);
    const std::vector<TreePlace> second = NodeTree(nodes, true);
    for (uint32_t node = 0; node < nodes; ++node) {
      EXPECT_NE(ChildCount(first[node]) == 0, ChildCount(second[node]) == 0)
          << "node " << node << " of " << nodes;
    }
  }
}

TEST(NcclTrees, AreAsDeepAsTheLogarithm) {
  for (const uint32_t nodes : {4u, 16u, 64u, 256u}) {
    const std::vector<TreePlace> tree = NodeTree(nodes, false);
    uint32_t depth = 0;
    for (uint32_t node = 0; node < nodes; ++node) {
      uint32_t steps = 0;
      for (int32_t at = tree[node].up; at != kNoPeer; at = tree[static_cast<uint32_t>(at)].up) {
        ++steps;
      }
      depth = std::max(depth, steps);
    }
    EXPECT_EQ(1u << depth, nodes);
  }
}

TEST(NcclTrees, AreThoseOfEightNodesInNcclsDrawing) {
  // src/graph/trees.cc: 0 over 4, 4 over 2 and 6, 2 over 1 and 3, 6 over 5 and 7.
  EXPECT_THAT(PlaceInDoubleTree(8, 0, false).down, ElementsAre(kNoPeer, 4, kNoPeer));
  EXPECT_THAT(PlaceInDoubleTree(8, 4, false).down, ElementsAre(2, 6, kNoPeer));
  EXPECT_THAT(PlaceInDoubleTree(8, 2, false).down, ElementsAre(1, 3, kNoPeer));
  EXPECT_EQ(PlaceInDoubleTree(8, 4, false).up, 0);
  EXPECT_EQ(PlaceInDoubleTree(8, 5, false).up, 6);
  EXPECT_EQ(PlaceInDoubleTree(8, 7, false).up, 6);
}

TEST(NcclTrees, AreThoseOfALogOfTwoServers) {
  // Trees [0] 1/8/-1->0->-1 [1] -1/-1/-1->0->7 … [8] 1/-1/-1->0->8
  const auto trees = BuildTrees(Servers(2), 8, 16);
  EXPECT_EQ(trees[0][0].up, kNoPeer);
  EXPECT_THAT(trees[0][0].down, ElementsAre(1, 8, kNoPeer));
  EXPECT_EQ(trees[1][0].up, 7);
  EXPECT_THAT(trees[1][0].down, ElementsAre(kNoPeer, kNoPeer, kNoPeer));
  EXPECT_EQ(trees[8][0].up, 8);
  EXPECT_THAT(trees[8][0].down, ElementsAre(1, kNoPeer, kNoPeer));
}

TEST(NcclTrees, SpanEveryCommunicatorOnEveryChannel) {
  for (const uint32_t nodes : {1u, 2u, 3u, 4u, 7u, 16u}) {
    for (const uint32_t gpus : {1u, 4u, 8u}) {
      if (nodes * gpus < 2) continue;
      const auto trees = BuildTrees(Servers(nodes, gpus), 8, 16);
      for (const auto& tree : trees) ExpectATree(tree);
    }
  }
}

TEST(NcclTrees, LeaveAServerByOneGpuOnItsOwnRail) {
  const auto trees = BuildTrees(Servers(4), 8, 16);
  for (uint32_t channel = 0; channel < 16; ++channel) {
    for (uint32_t rank = 0; rank < 32; ++rank) {
      const TreePlace& place = trees[channel][rank];
      std::vector<int32_t> peers(place.down.begin(), place.down.end());
      peers.push_back(place.up);
      for (const int32_t peer : peers) {
        if (peer == kNoPeer || static_cast<uint32_t>(peer) / 8 == rank / 8) continue;
        EXPECT_EQ(rank % 8, channel % 8);
        EXPECT_EQ(static_cast<uint32_t>(peer) % 8, channel % 8);
      }
    }
  }
}

TEST(StatedTrees, AreRepeatedOverTheChannels) {
  CommunicatorLayout layout = Servers(1, 4);
  layout.tree_parents = {{-1, 0, 0, 1}, {1, 2, 3, -1}};
  const auto trees = StatedTrees(layout, 3);
  ASSERT_EQ(trees.size(), 3u);
  EXPECT_EQ(trees[0][0].up, kNoPeer);
  EXPECT_EQ(trees[0][0].down, (std::array<int32_t, kTreeArity>{1, 2, kNoPeer}));
  EXPECT_EQ(trees[0][1].down[0], 3);
  EXPECT_EQ(trees[1][0].up, 1);
  EXPECT_EQ(trees[2][0].down, trees[0][0].down);
}

}  // namespace
}  // namespace railyard
