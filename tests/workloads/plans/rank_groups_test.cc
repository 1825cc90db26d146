// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/rank_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

// Parts by tensor, context, data, pipeline.
Parallelism Parts(uint32_t tensor, uint32_t context, uint32_t data, uint32_t pipeline) {
  Parallelism parallelism;
  parallelism.parts = {tensor, context, data, pipeline};
  return parallelism;
}

// The second study's organisation of (p, t, d) = (4, 2, 4): stages of 8 consecutive GPUs, in each 4
// tensor groups of 2 neighbours and 2 data groups.
TEST(RankGroupsTest, StagesHoldTensorGroupsAndDataGroups) {
  const Parallelism parts = Parts(2, 1, 4, 4);
  const RankGroups groups(parts);
  EXPECT_EQ(groups.rank_count(), 32u);
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{0}), Dimension::kTensor), ElementsAre(0, 1));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{11}), Dimension::kTensor),
              ElementsAre(10, 11));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{0}), Dimension::kData),
              ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{13}), Dimension::kData),
              ElementsAre(9, 11, 13, 15));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{3}), Dimension::kPipeline),
              ElementsAre(3, 11, 19, 27));
}

TEST(RankGroupsTest, TheOrderOfDimensionsDecidesWhoAreNeighbours) {
  Parallelism parts = Parts(2, 1, 2, 2);
  parts.order = {Dimension::kPipeline, Dimension::kData, Dimension::kTensor, Dimension::kContext};
  const RankGroups groups(parts);
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{0}), Dimension::kPipeline),
              ElementsAre(0, 1));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{0}), Dimension::kData), ElementsAre(0, 2));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{0}), Dimension::kTensor), ElementsAre(0, 4));
}

TEST(RankGroupsTest, AnExplicitMappingPutsPlacesOnRanks) {
  Parallelism parts = Parts(2, 1, 2, 1);
  parts.rank_at = {3, 1, 0, 2};
  const RankGroups groups(parts);
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{3}), Dimension::kTensor), ElementsAre(3, 1));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{2}), Dimension::kTensor), ElementsAre(0, 2));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{2}), Dimension::kData), ElementsAre(1, 2));
}

TEST(RankGroupsTest, AGroupOverTwoDimensionsCountsTheInnerFirst) {
  const Parallelism parts = Parts(1, 2, 3, 1);
  const RankGroups groups(parts);
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{4}), Dimension::kContext, Dimension::kData),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(groups.GroupOf(groups.PlaceOf(GlobalRank{4}), Dimension::kData, Dimension::kContext),
              ElementsAre(0, 2, 4, 1, 3, 5));
}

}  // namespace
}  // namespace railyard
