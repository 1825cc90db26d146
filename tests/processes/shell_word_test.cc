// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/shell_word.h"

#include <string>

#include <gtest/gtest.h>

#include "simulator/processes/child_process.h"

namespace railyard {
namespace {

TEST(ShellWordTest, IsQuotedOnlyWhereItMustBe) {
  EXPECT_EQ(ShellWord("out/a-b_1.txt"), "out/a-b_1.txt");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
}

TEST(ShellWordTest, AShellReadsItAsItIs) {
  for (const std::string word : {"$HOME", "a'b\"c\\d", "*", "~", "#x", "two\nlines", ";", "!"}) {
    EXPECT_EQ(OutputOf({"sh", "-c", "printf %s " + ShellWord(word)}).output, word);
  }
}

}  // namespace
}  // namespace railyard
