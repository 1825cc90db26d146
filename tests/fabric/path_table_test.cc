// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/path_table.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

class PathTableTest : public testing::TablesFixture {
 protected:
  PathRef Add(const std::vector<LinkId>& links) {
    return paths_.Add(links, std::nullopt, *tables_.classes);
  }

  PathTable paths_;
};

TEST_F(PathTableTest, PathsLieOneBehindTheOther) {
  const PathRef there = Add({from_left_, to_right_});
  const PathRef nowhere = Add({});
  const PathRef back = Add({from_right_, to_left_});
  EXPECT_EQ(there.first, 0u);
  EXPECT_EQ(there.hop_count, 2);
  EXPECT_EQ(nowhere.hop_count, 0);
  EXPECT_EQ(back.first, 2u);
  EXPECT_EQ(paths_.LinkAt(back.first + 1), to_left_);
  EXPECT_EQ(paths_.LinkOf(there, 1), to_right_);
}

TEST_F(PathTableTest, PathsStayAsTheTableGrows) {
  const PathRef first = Add({from_left_, to_right_});
  for (int i = 0; i < 1'000; ++i) Add({from_right_, to_left_});
  EXPECT_EQ(paths_.LinksOf(first), (std::vector<LinkId>{from_left_, to_right_}));
  EXPECT_TRUE(paths_.LinksOf(Add({})).empty());
}

TEST_F(PathTableTest, APathHasAtMost255Links) {
  EXPECT_EQ(Add(std::vector<LinkId>(255, from_left_)).hop_count, 255);
  EXPECT_DEATH(Add(std::vector<LinkId>(256, from_left_)), "a path of more than 255 links");
}

}  // namespace
}  // namespace railyard
