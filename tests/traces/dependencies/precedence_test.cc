// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/precedence.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

class PrecedenceTest : public ::testing::Test {
 protected:
  uint32_t AddOnNewLane(const std::vector<uint32_t>& after = {}) {
    return precedence_.Add(precedence_.NewLane(), after);
  }

  Precedence precedence_;
};

TEST_F(PrecedenceTest, OperationsOfALaneFollowOneAnother) {
  const uint32_t a = AddOnNewLane();
  const uint32_t b = precedence_.Add(precedence_.LaneOf(a), {});
  EXPECT_TRUE(precedence_.Follows(b, a));
  EXPECT_FALSE(precedence_.Follows(a, b));
  EXPECT_FALSE(precedence_.Follows(b, b));
  EXPECT_FALSE(precedence_.IsLastOfLane(a));
  EXPECT_TRUE(precedence_.IsLastOfLane(b));
}

// a - b   c - d   e, with c after a, e after d.
TEST_F(PrecedenceTest, WhatAnOperationFollowsOnOtherLanesIsTransitive) {
  const uint32_t a = AddOnNewLane();
  const uint32_t b = precedence_.Add(precedence_.LaneOf(a), {});
  const uint32_t c = AddOnNewLane({a});
  const uint32_t d = precedence_.Add(precedence_.LaneOf(c), {});
  const uint32_t e = AddOnNewLane({d});
  EXPECT_TRUE(precedence_.Follows(e, a));
  EXPECT_TRUE(precedence_.Follows(e, c));
  EXPECT_TRUE(precedence_.Follows(d, a));
  EXPECT_FALSE(precedence_.Follows(e, b));
  EXPECT_FALSE(precedence_.Follows(c, b));
  EXPECT_FALSE(precedence_.Follows(a, e));
}

TEST_F(PrecedenceTest, SiblingsFollowTheSameAndNotEachOther) {
  const uint32_t a = AddOnNewLane();
  const uint32_t b = AddOnNewLane();
  std::vector<uint32_t> siblings;
  for (int i = 0; i < 3; ++i) siblings.push_back(AddOnNewLane({a, b}));
  const uint32_t last = AddOnNewLane(siblings);
  for (const uint32_t sibling : siblings) {
    EXPECT_TRUE(precedence_.Follows(sibling, a));
    EXPECT_TRUE(precedence_.Follows(sibling, b));
    EXPECT_TRUE(precedence_.Follows(last, sibling));
  }
  EXPECT_FALSE(precedence_.Follows(siblings[2], siblings[0]));
  EXPECT_TRUE(precedence_.Follows(last, b));
}

TEST_F(PrecedenceTest, TheLowestLaneWhoseEndIsFollowedIsFound) {
  const uint32_t a = AddOnNewLane();
  const uint32_t b = AddOnNewLane();
  const uint32_t c = AddOnNewLane({a, b});
  EXPECT_EQ(precedence_.LaneBehind({c}), precedence_.LaneOf(a));
  precedence_.Add(precedence_.LaneOf(a), {});  // c does not follow it
  EXPECT_EQ(precedence_.LaneBehind({c}), precedence_.LaneOf(b));
  EXPECT_EQ(precedence_.LaneBehind({a, b}), std::nullopt);
}

// Each of 8,192 operations on a lane of its own follows all before it: 33 M facts. Those that are
// known are true, and the first ones are known.
TEST_F(PrecedenceTest, KnowledgeIsBounded) {
  std::vector<uint32_t> all;
  for (int i = 0; i < 8192; ++i)
    all.push_back(AddOnNewLane(all.empty() ? all : std::vector{all.back()}));
  EXPECT_TRUE(precedence_.Follows(all[1000], all[0]));
  EXPECT_FALSE(precedence_.Follows(all[8191], all[0]));
  EXPECT_FALSE(precedence_.Follows(all[0], all[8191]));
}

}  // namespace
}  // namespace railyard
