// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/file_size.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/topologies/format_test.h"

namespace railyard {
namespace {

class FileSizeTest : public testing::FormatTest {};

TEST_F(FileSizeTest, AFileOfMoreBytesIsAnError) {
  const std::string path = Write("f.xml", "12345");
  Diagnostics diagnostics;
  EXPECT_TRUE(IsWithinSize(path, 5, diagnostics));
  EXPECT_FALSE(diagnostics.HasErrors());
  EXPECT_FALSE(IsWithinSize(path, 4, diagnostics));
  EXPECT_EQ(diagnostics.ToString(), path + ":1:1: error: 5 bytes (expected at most 4)\n");
}

// The reader of a missing file says that it is missing.
TEST_F(FileSizeTest, AFileWithoutASizeIsNoError) {
  Diagnostics diagnostics;
  EXPECT_TRUE(IsWithinSize(Write("f.xml", "") + ".gone", 0, diagnostics));
  EXPECT_TRUE(IsWithinSize("/dev/null", 0, diagnostics));
  EXPECT_EQ(diagnostics.ToString(), "");
}

}  // namespace
}  // namespace railyard
