// SPDX-License-Identifier: GPL-2.0-only
// Expected rings: those NCCL 2.27.5 prints on 8 V100 in a hybrid cube mesh, twelve channels: twice
// four of the wide cycle in each direction, twice two of the narrow one.
#include "workloads/nccl/mesh_rings.h"

#include <map>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_channels.h"
#include "workloads/nccl/nccl_graph.h"
#include "workloads/nccl/nccl_settings.h"
#include "workloads/nccl/nccl_trees.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Lanes = std::vector<std::vector<uint32_t>>;

Lanes Mesh(uint32_t gpus, const std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>& bundles) {
  Lanes lanes(gpus, std::vector<uint32_t>(gpus));
  for (const auto& [a, b, count] : bundles) {
    if (a < gpus && b < gpus) lanes[a][b] = lanes[b][a] = count;
  }
  return lanes;
}

Lanes HybridCubeMesh(uint32_t gpus = 8) {
  return Mesh(gpus, {{0, 1, 1},
                     {0, 2, 1},
                     {0, 3, 2},
                     {0, 4, 2},
                     {1, 2, 2},
                     {1, 3, 1},
                     {1, 5, 2},
                     {2, 3, 2},
                     {2, 6, 1},
                     {3, 7, 1},
                     {4, 5, 1},
                     {4, 6, 1},
                     {4, 7, 2},
                     {5, 6, 2},
                     {5, 7, 1},
                     {6, 7, 2}});
}

CommunicatorLayout LayoutOfMesh(const Lanes& lanes, uint32_t nodes = 1) {
  CommunicatorLayout layout;
  for (uint32_t node = 0; node < nodes; ++node) {
    for (uint32_t gpu = 0; gpu < lanes.size(); ++gpu) layout.ranks.push_back({node, gpu});
  }
  layout.nvswitch = false;
  layout.generation = GpuGeneration::kVolta;
  layout.mesh_lanes = lanes;
  return layout;
}

void ExpectLinksOfTheirOwn(const std::vector<std::vector<uint32_t>>& rings, const Lanes& lanes) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> used;
  for (const auto& ring : rings) {
    for (size_t i = 0; i < ring.size(); ++i) ++used[{ring[i], ring[(i + 1) % ring.size()]}];
  }
  for (const auto& [hop, count] : used) {
    EXPECT_LE(count, lanes[hop.first][hop.second]) << hop.first << " to " << hop.second;
  }
}

TEST(FindMeshRings, AHybridCubeMeshHasTheRingsThatNcclPrints) {
  const auto rings = FindMeshRings(HybridCubeMesh());
  EXPECT_THAT(
      rings, ElementsAre(ElementsAre(0, 3, 2, 1, 5, 6, 7, 4), ElementsAre(0, 3, 2, 1, 5, 6, 7, 4),
                         ElementsAre(0, 4, 7, 6, 5, 1, 2, 3), ElementsAre(0, 4, 7, 6, 5, 1, 2, 3),
                         ElementsAre(0, 1, 3, 7, 5, 4, 6, 2), ElementsAre(0, 2, 6, 4, 5, 7, 3, 1)));
  ExpectLinksOfTheirOwn(rings, HybridCubeMesh());
}

// NCCL's graph dump of 4 V100 with two NVLinks for each pair (github.com/NVIDIA/nccl/issues/713)
// has these rings, in any order.
TEST(FindMeshRings, FourGpusWithTwoNvlinksForEachPairHaveNcclsSixRings) {
  const Lanes lanes = Mesh(4, {{0, 1, 2}, {0, 2, 2}, {0, 3, 2}, {1, 2, 2}, {1, 3, 2}, {2, 3, 2}});
  EXPECT_THAT(FindMeshRings(lanes),
              ::testing::UnorderedElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(0, 1, 3, 2),
                                              ElementsAre(0, 2, 3, 1), ElementsAre(0, 2, 1, 3),
                                              ElementsAre(0, 3, 1, 2), ElementsAre(0, 3, 2, 1)));
}

// By hand: GPU 0 has four NVLinks to the others of its quad, of which a ring and its reverse take
// two.
TEST(FindMeshRings, AQuadHasAsManyRingsAsItsNarrowestGpuAllows) {
  const auto rings = FindMeshRings(HybridCubeMesh(4));
  EXPECT_THAT(rings, SizeIs(4));
  ExpectLinksOfTheirOwn(rings, HybridCubeMesh(4));
}

TEST(FindMeshRings, TwoGpusHaveARingForEachNvlinkAndGpusInALineNone) {
  EXPECT_THAT(FindMeshRings(Mesh(2, {{0, 1, 3}})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1), ElementsAre(0, 1)));
  EXPECT_THAT(FindMeshRings(Mesh(3, {{0, 1, 2}, {1, 2, 2}})), IsEmpty());
  EXPECT_THAT(FindMeshRings(Mesh(1, {})), IsEmpty());
}

// A full mesh of n GPUs with an NVLink each has (n - 1) / 2 rings without a common link (Walecki).
TEST(FindMeshRings, AFullMeshIsUsedUp) {
  for (const uint32_t gpus : {3u, 5u, 7u}) {
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> bundles;
    for (uint32_t a = 0; a < gpus; ++a) {
      for (uint32_t b = a + 1; b < gpus; ++b) bundles.emplace_back(a, b, 1);
    }
    const auto rings = FindMeshRings(Mesh(gpus, bundles));
    EXPECT_THAT(rings, SizeIs(gpus - 1));
    ExpectLinksOfTheirOwn(rings, Mesh(gpus, bundles));
  }
}

TEST(MeshChannels, AreTheRingsTwice) {
  const auto channels = BuildChannels(LayoutOfMesh(HybridCubeMesh()), {});
  ASSERT_THAT(channels.rings, SizeIs(12));
  for (size_t channel = 0; channel < 6; ++channel) {
    EXPECT_EQ(channels.rings[channel], channels.mesh_rings[channel]);
    EXPECT_EQ(channels.rings[channel + 6], channels.rings[channel]);
  }
  EXPECT_THAT(channels.assumptions, IsEmpty());
  // Two for the only NVLink of GPUs 0 and 1 (ncclTopoGetNchannels).
  EXPECT_EQ(channels.p2p_channels_per_peer, 2u);
  const TunerPlatform platform =
      SearchedPlatform(LayoutOfMesh(HybridCubeMesh()), static_cast<uint32_t>(6));
  EXPECT_EQ(platform.ring.channel_count, 6u);
  EXPECT_DOUBLE_EQ(platform.ring.intra_gb_per_s, 20);
}

TEST(MeshChannels, TreesRunAlongRings) {
  const auto channels = BuildChannels(LayoutOfMesh(HybridCubeMesh()), {});
  const auto trees = BuildTrees(LayoutOfMesh(HybridCubeMesh()), channels.graph_channel_count,
                                static_cast<uint32_t>(channels.rings.size()), channels.mesh_rings);
  ASSERT_THAT(trees, SizeIs(12));
  for (size_t channel = 0; channel < trees.size(); ++channel) {
    const std::vector<uint32_t>& ring = channels.rings[channel];
    EXPECT_EQ(trees[channel][ring.front()].up, kNoPeer);
    for (size_t i = 1; i < ring.size(); ++i) {
      EXPECT_EQ(trees[channel][ring[i]].up, static_cast<int32_t>(ring[i - 1]));
    }
  }
}

// Every hop inside a server is an NVLink's, and each server is entered and left once.
TEST(MeshChannels, BetweenServersRingsAreCutOpen) {
  const Lanes lanes = HybridCubeMesh();
  const auto channels = BuildChannels(LayoutOfMesh(lanes, 2), {});
  ASSERT_THAT(channels.rings, SizeIs(12));
  for (const auto& ring : channels.rings) {
    int between = 0;
    for (size_t i = 0; i < ring.size(); ++i) {
      const uint32_t from = ring[i];
      const uint32_t to = ring[(i + 1) % ring.size()];
      if (from / 8 != to / 8) {
        ++between;
      } else {
        EXPECT_GT(lanes[from % 8][to % 8], 0u);
      }
    }
    EXPECT_EQ(between, 2);
  }
  ASSERT_THAT(channels.assumptions, SizeIs(1));
  EXPECT_THAT(channels.assumptions.front(), HasSubstr("cut open at one GPU after the other"));
  NcclSettings settings;
  settings.unusable_nics = {{ServerIndex{0}, 3}};
  EXPECT_THAT(BuildChannels(LayoutOfMesh(lanes, 2), settings).assumptions.back(),
              HasSubstr("do not avoid them"));
}

}  // namespace
}  // namespace railyard
