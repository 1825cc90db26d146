// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/nvlink_components.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/rail_optimized.h"

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
