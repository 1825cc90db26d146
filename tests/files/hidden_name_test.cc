// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/files/hidden_name.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(HiddenNameTest, NamesAreOfTheProcessAndNeverTheSame) {
  const std::filesystem::path first = NewHiddenName("out");
  const std::filesystem::path second = NewHiddenName("out");
  EXPECT_EQ(first.parent_path(), "out");
  EXPECT_TRUE(IsHiddenName(first.filename().string())) << first;
  EXPECT_NE(first, second);
}

TEST(HiddenNameTest, OtherNamesAreNone) {
  EXPECT_TRUE(IsHiddenName(".railyard-12-345"));
  for (const char* name :
       {"", ".railyard-", ".railyard-1", ".railyard-1-", ".railyard--1", ".railyard-a-1",
        ".railyard-1-2-3", "railyard-1-2", ".railyard-1-0.old"}) {
    EXPECT_FALSE(IsHiddenName(name)) << name;
  }
}

}  // namespace
}  // namespace railyard
