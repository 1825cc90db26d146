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

class NvlinkComponentsTest : public ::testing::Test {
 protected:
  NvlinkComponentsTest() {
    RailOptimizedSpec spec;
    spec.servers = 2;
    graph_ = MakeRailOptimized(spec);
  }

  NvlinkComponents Of(const std::vector<std::vector<uint32_t>>& communicators) {
    std::vector<TraceCommunicator> named;
    for (const auto& ranks : communicators) named.push_back({.name = "", .ranks = ranks});
    return {graph_, named};
  }

  FabricGraph graph_;
};

TEST_F(NvlinkComponentsTest, GroupsOfAServerAreApart) {
  const NvlinkComponents nvlinks = Of({{0, 1, 2, 3}, {4, 5, 6, 7}});
  ASSERT_THAT(nvlinks.components(), SizeIs(2));
  EXPECT_THAT(nvlinks.components()[0].gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(nvlinks.components()[1].gpus, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(nvlinks.UseOf(0), NvlinkUse::kOnly);
  EXPECT_EQ(nvlinks.UseOf(1), NvlinkUse::kOnly);
  EXPECT_EQ(nvlinks.OfGpu(5), 1u);
  EXPECT_EQ(nvlinks.OfGpu(8), NvlinkComponents::kNone);
}

TEST_F(NvlinkComponentsTest, HasBothDirectionsOfEveryNvlinkOfItsGpus) {
  const NvlinkComponents nvlinks = Of({{8, 9}});
  ASSERT_THAT(nvlinks.components(), SizeIs(1));
  const std::vector<LinkId>& links = nvlinks.components()[0].links;
  EXPECT_THAT(links, SizeIs(2 * 2 * kPlanes));
  std::vector<Tier> tiers;
  for (const LinkId link : links) tiers.push_back(graph_.link(link).tier);
  EXPECT_THAT(tiers, Each(Tier::kNvlink));
}

TEST_F(NvlinkComponentsTest, HaveOneShapeWhereOnlyTheServerDiffers) {
  const NvlinkComponents like = Of({{0, 1}, {8, 9}});
  EXPECT_EQ(like.components()[0].shape, like.components()[1].shape);
  EXPECT_EQ(like.PlaceOf(9), 1u);
  EXPECT_EQ(like.GpuAt(1, 1), 9u);
  const NvlinkComponents others = Of({{0, 1}, {8, 10}});
  EXPECT_NE(others.components()[0].shape, others.components()[1].shape);
}

TEST_F(NvlinkComponentsTest, HaveShapesOfTheirOwnWhereCablesDiffer) {
  FabricGraph mixed;
  for (int32_t server = 0; server < 2; ++server) {
    std::vector<DeviceId> gpus;
    for (int32_t gpu = 0; gpu < 2; ++gpu) {
      gpus.push_back(mixed.AddDevice({.name = "gpu" + std::to_string(2 * server + gpu),
                                      .kind = DeviceKind::kGpu,
                                      .server = server,
                                      .local_index = gpu}));
    }
    mixed.AddCable(gpus[0], gpus[1],
                   {.tier = Tier::kNvlink, .rate_bps = 200'000'000'000, .propagation_ps = server});
  }
  const std::vector<TraceCommunicator> pairs = {{.name = "", .ranks = {0, 1}},
                                                {.name = "", .ranks = {2, 3}}};
  const NvlinkComponents nvlinks(mixed, pairs);
  EXPECT_NE(nvlinks.components()[0].shape, nvlinks.components()[1].shape);
}

TEST_F(NvlinkComponentsTest, CommunicatorsThatShareAGpuShareAComponent) {
  const NvlinkComponents nvlinks = Of({{0, 1}, {2, 3}, {1, 2}});
  ASSERT_THAT(nvlinks.components(), SizeIs(1));
  EXPECT_THAT(nvlinks.components()[0].gpus, ElementsAre(0, 1, 2, 3));
}

// One GPU of each server sends to the others over the network; several relay for one another, too.
TEST_F(NvlinkComponentsTest, CommunicatorsAcrossServersUseNvlinksWhereTwoOfAServerAreInThem) {
  const NvlinkComponents nvlinks = Of({{0, 8}, {0, 1, 8}});
  EXPECT_EQ(nvlinks.UseOf(0), NvlinkUse::kNone);
  EXPECT_EQ(nvlinks.UseOf(1), NvlinkUse::kMixed);
  ASSERT_THAT(nvlinks.components(), SizeIs(1));
  EXPECT_THAT(nvlinks.components()[0].gpus, ElementsAre(0, 1));
}

}  // namespace
}  // namespace railyard
