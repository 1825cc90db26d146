// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/nvlink_partitions.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/rail_optimized.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint32_t kPlanes = 4;

class NvlinkPartitionsTest : public ::testing::Test {
 protected:
  NvlinkPartitionsTest() {
    RailOptimizedSpec spec;
    spec.servers = 2;
    graph_ = MakeRailOptimized(spec);
  }

  NvlinkPartitions Of(const std::vector<std::vector<uint32_t>>& communicators) {
    std::vector<TraceCommunicator> named;
    for (const auto& ranks : communicators)
      named.push_back({.name = "", .ranks = GlobalRanksOf(ranks)});
    return {graph_, named};
  }

  FabricGraph graph_;
};

TEST_F(NvlinkPartitionsTest, GroupsOfAServerAreIndependent) {
  const NvlinkPartitions nvlinks = Of({{0, 1, 2, 3}, {4, 5, 6, 7}});
  ASSERT_THAT(nvlinks.partitions(), SizeIs(2));
  EXPECT_THAT(nvlinks.partitions()[0].gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(nvlinks.partitions()[1].gpus, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(nvlinks.UseOf(CommunicatorIndex{0}), NvlinkUse::kOnly);
  EXPECT_EQ(nvlinks.UseOf(CommunicatorIndex{1}), NvlinkUse::kOnly);
  EXPECT_EQ(nvlinks.OfGpu(GpuIndex{5}), 1u);
  EXPECT_EQ(nvlinks.OfGpu(GpuIndex{8}), PartitionIndex::kNone);
}

TEST_F(NvlinkPartitionsTest, HasBothDirectionsOfEveryNvlinkOfItsGpus) {
  const NvlinkPartitions nvlinks = Of({{8, 9}});
  ASSERT_THAT(nvlinks.partitions(), SizeIs(1));
  const std::vector<LinkId>& links = nvlinks.partitions()[0].links;
  EXPECT_THAT(links, SizeIs(2 * 2 * kPlanes));
  std::vector<Tier> tiers;
  for (const LinkId link : links) tiers.push_back(graph_.link(link).tier);
  EXPECT_THAT(tiers, Each(Tier::kNvlink));
}

TEST_F(NvlinkPartitionsTest, HaveOneShapeWhereOnlyTheServerDiffers) {
  const NvlinkPartitions like = Of({{0, 1}, {8, 9}});
  EXPECT_EQ(like.partitions()[0].shape, like.partitions()[1].shape);
  EXPECT_EQ(like.PlaceOf(GpuIndex{9}), 1u);
  const NvlinkPartitions others = Of({{0, 1}, {8, 10}});
  EXPECT_NE(others.partitions()[0].shape, others.partitions()[1].shape);
}

TEST_F(NvlinkPartitionsTest, HaveShapesOfTheirOwnWhereCablesDiffer) {
  FabricGraph mixed;
  for (int32_t server = 0; server < 2; ++server) {
    std::vector<DeviceId> gpus;
    for (int32_t gpu = 0; gpu < 2; ++gpu) {
      gpus.push_back(mixed.AddDevice({.name = "gpu" + std::to_string(2 * server + gpu),
                                      .kind = DeviceKind::kGpu,
                                      .server = ServerIndex{server},
                                      .local_index = gpu}));
    }
    mixed.AddCable(gpus[0], gpus[1],
                   {.tier = Tier::kNvlink, .rate_bps = 200'000'000'000, .propagation_ps = server});
  }
  const std::vector<TraceCommunicator> pairs = {{.name = "", .ranks = GlobalRanksOf({0, 1})},
                                                {.name = "", .ranks = GlobalRanksOf({2, 3})}};
  const NvlinkPartitions nvlinks(mixed, pairs);
  EXPECT_NE(nvlinks.partitions()[0].shape, nvlinks.partitions()[1].shape);
}

TEST_F(NvlinkPartitionsTest, CommunicatorsThatShareAGpuShareAPartition) {
  const NvlinkPartitions nvlinks = Of({{0, 1}, {2, 3}, {1, 2}});
  ASSERT_THAT(nvlinks.partitions(), SizeIs(1));
  EXPECT_THAT(nvlinks.partitions()[0].gpus, ElementsAre(0, 1, 2, 3));
}

// GPUs of a ring of four, without NVLinks across: 0-1-2-3-0, three lanes each but for 3-0.
TEST_F(NvlinkPartitionsTest, GpusThatRelayShareThePartitionOfThoseTheyRelayFor) {
  FabricGraph ring;
  std::vector<DeviceId> gpus;
  for (int32_t gpu = 0; gpu < 4; ++gpu) {
    gpus.push_back(ring.AddDevice({.name = "gpu" + std::to_string(gpu),
                                   .kind = DeviceKind::kGpu,
                                   .server = ServerIndex{0},
                                   .local_index = gpu}));
  }
  for (uint32_t gpu = 0; gpu < 4; ++gpu) {
    ring.AddCable(
        gpus[gpu], gpus[(gpu + 1) % 4],
        {.tier = Tier::kNvlink, .rate_bps = 200'000'000'000, .lanes = gpu == 3 ? 1u : 3u});
  }
  const auto partitions_of = [&](std::vector<GlobalRank> first, std::vector<GlobalRank> second) {
    const std::vector<TraceCommunicator> pairs = {{.name = "", .ranks = std::move(first)},
                                                  {.name = "", .ranks = std::move(second)}};
    return NvlinkPartitions(ring, pairs);
  };
  const NvlinkPartitions neighbours = partitions_of(GlobalRanksOf({0, 1}), GlobalRanksOf({2, 3}));
  ASSERT_THAT(neighbours.partitions(), SizeIs(2));
  // Packets from 0 to 2 cross 1; those from 1 to 3 cross 2.
  const NvlinkPartitions across = partitions_of(GlobalRanksOf({0, 2}), GlobalRanksOf({1, 3}));
  ASSERT_THAT(across.partitions(), SizeIs(1));
  EXPECT_THAT(across.partitions()[0].gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(across.UseOf(CommunicatorIndex{0}), NvlinkUse::kOnly);
  const NvlinkPartitions alone = partitions_of(GlobalRanksOf({0, 2}), GlobalRanksOf({0, 2}));
  ASSERT_THAT(alone.partitions(), SizeIs(1));
  EXPECT_THAT(alone.partitions()[0].gpus, ElementsAre(0, 1, 2));
}

// One GPU of each server sends to the others over the network; several relay for one another, too.
TEST_F(NvlinkPartitionsTest, CommunicatorsAcrossServersUseNvlinksWhereTwoOfAServerAreInThem) {
  const NvlinkPartitions nvlinks = Of({{0, 8}, {0, 1, 8}});
  EXPECT_EQ(nvlinks.UseOf(CommunicatorIndex{0}), NvlinkUse::kNone);
  EXPECT_EQ(nvlinks.UseOf(CommunicatorIndex{1}), NvlinkUse::kMixed);
  ASSERT_THAT(nvlinks.partitions(), SizeIs(1));
  EXPECT_THAT(nvlinks.partitions()[0].gpus, ElementsAre(0, 1));
}

}  // namespace
}  // namespace railyard
