// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/diagnostics.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(DiagnosticsTest, AFindingIsOneLineWithPlaceSeverityFieldAndWhat) {
  Diagnostics diagnostics;
  diagnostics.Error({"a.textproto", 8, 3}, "links[1].rate", "is wrong (expected right)");
  EXPECT_EQ(diagnostics.ToString(),
            "a.textproto:8:3: error: links[1].rate: is wrong (expected right)\n");
}

TEST(DiagnosticsTest, WhatIsNotKnownOfThePlaceIsLeftOut) {
  Diagnostics diagnostics;
  diagnostics.Error({"a", 0, 0}, "", "whole file");
  diagnostics.Error({"a", 4, 0}, "", "whole line");
  diagnostics.Error({}, "", "no file");
  EXPECT_EQ(diagnostics.ToString(),
            "a: error: whole file\n"
            "a:4:1: error: whole line\n"
            "error: no file\n");
}

// Members of archives have names that others have chosen.
TEST(DiagnosticsTest, ANameCannotForgeAFinding) {
  Diagnostics diagnostics;
  diagnostics.Error({"a.tar/x\x1b[2J\nb.log:1:1: error: no", 1, 1}, "", "is no log");
  EXPECT_EQ(diagnostics.ToString(),
            "a.tar/x\\x1b[2J\\x0ab.log:1:1: error: no:1:1: error: is no log\n");
}

TEST(DiagnosticsTest, OnlyErrorsCountAsErrors) {
  Diagnostics diagnostics;
  diagnostics.Warning({"a", 1, 1}, "", "odd");
  diagnostics.Note({"a", 2, 1}, "", "because of this");
  EXPECT_FALSE(diagnostics.HasErrors());
  EXPECT_EQ(diagnostics.ToString(), "a:1:1: warning: odd\na:2:1: note: because of this\n");
  diagnostics.Error({"a", 3, 1}, "", "wrong");
  EXPECT_TRUE(diagnostics.HasErrors());
  EXPECT_EQ(diagnostics.error_count(), 1);
}

TEST(DiagnosticsTest, FindingsAreSortedWithinFilesAndNotesStayWithTheirs) {
  Diagnostics diagnostics;
  diagnostics.Error({"b", 9, 1}, "", "first file seen, ninth line");
  diagnostics.Note({"a", 1, 1}, "", "belongs to the ninth line");
  diagnostics.Error({"a", 2, 2}, "", "second file");
  diagnostics.Error({"b", 3, 7}, "", "third line, later column");
  diagnostics.Error({"b", 3, 2}, "", "third line");
  EXPECT_EQ(diagnostics.ToString(),
            "b:3:2: error: third line\n"
            "b:3:7: error: third line, later column\n"
            "b:9:1: error: first file seen, ninth line\n"
            "a:1:1: note: belongs to the ninth line\n"
            "a:2:2: error: second file\n");
}

TEST(DiagnosticsTest, ARepeatedFindingIsShownOnce) {
  Diagnostics diagnostics;
  diagnostics.Error({"a", 1, 1}, "seed", "wrong");
  diagnostics.Error({"a", 1, 1}, "seed", "wrong");
  EXPECT_EQ(diagnostics.ToString(), "a:1:1: error: seed: wrong\n");
}

TEST(DiagnosticsTest, TheFirstThousandFindingsAreShownAndTheRestCounted) {
  Diagnostics diagnostics;
  for (int line = 1; line <= 1'002; ++line) diagnostics.Error({"a", line, 1}, "", "wrong");
  EXPECT_EQ(diagnostics.error_count(), 1'002);
  const std::string text = diagnostics.ToString();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1'001);
  EXPECT_TRUE(text.ends_with("a:1000:1: error: wrong\nand 2 more\n"));
}

}  // namespace
}  // namespace railyard
