// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/names.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

const std::vector<std::string> kAlgorithms = {"RING", "TREE", "NVLS"};

TEST(NamesTest, OneTypingMistakeIsFound) {
  EXPECT_EQ(ClosestName("RNG", kAlgorithms), "RING");    // left out
  EXPECT_EQ(ClosestName("RINGG", kAlgorithms), "RING");  // added
  EXPECT_EQ(ClosestName("RONG", kAlgorithms), "RING");   // changed
  EXPECT_EQ(ClosestName("RNIG", kAlgorithms), "RING");   // swapped
  EXPECT_EQ(ClosestName("ring", kAlgorithms), "RING");   // case
}

TEST(NamesTest, WhatIsFarFromEverythingIsNotGuessedAt) {
  EXPECT_EQ(ClosestName("POTATO", kAlgorithms), "");
  EXPECT_EQ(ClosestName("", kAlgorithms), "");
  EXPECT_EQ(ClosestName("RING", {}), "");
  EXPECT_EQ(ClosestName(std::string(1000, 'R'), {std::string(1000, 'R') + "x"}), "");
}

TEST(NamesTest, TheClosestOfSeveralWins) {
  EXPECT_EQ(ClosestName("server1/nic3--laef3",
                        {"server1/nic2--leaf2", "server1/nic3--leaf3", "server2/nic3--leaf3"}),
            "server1/nic3--leaf3");
}

TEST(NamesTest, AnUnknownNameComesWithAGuessOrElseTheChoice) {
  EXPECT_EQ(UnknownName("", "RNIG", kAlgorithms), R"(unknown "RNIG" (did you mean "RING"?))");
  EXPECT_EQ(UnknownName("algorithm", "x", kAlgorithms),
            R"(unknown algorithm "x" (expected RING, TREE or NVLS))");
  const std::vector<std::string> many(21, "a name far away");
  EXPECT_EQ(UnknownName("link", "x", many), R"(unknown link "x")");
}

TEST(NamesTest, QuotedTextIsPrintableAndShort) {
  EXPECT_EQ(Quote("µs"), "\"µs\"");
  EXPECT_EQ(Quote("a\x1b[31m\n\xff"), R"("a\x1b[31m\x0a\xff")");
  EXPECT_EQ(Quote(std::string(81, 'x')), "\"" + std::string(80, 'x') + "…\"");
  EXPECT_EQ(Quote(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
}

TEST(NamesTest, EscapedTextIsWhole) {
  EXPECT_EQ(Escaped("µs"), "µs");
  EXPECT_EQ(Escaped("a\x1b[2J\n\xff"), R"(a\x1b[2J\x0a\xff)");
  EXPECT_EQ(Escaped(std::string(5000, 'x')), std::string(5000, 'x'));
}

TEST(NamesTest, WhatIsPrintableStandsOnOneLine) {
  EXPECT_TRUE(IsPrintable("µs, 4"));
  EXPECT_FALSE(IsPrintable("a\tb"));
  EXPECT_FALSE(IsPrintable("a\nb"));
  EXPECT_FALSE(IsPrintable("a\xff"));
}

TEST(NamesTest, TextIsUtf8WithoutControlCharacters) {
  EXPECT_EQ(FindNonText("a\tb\r\nc µ € 𝄞"), std::string_view::npos);
  EXPECT_EQ(FindNonText(std::string_view("ab\0c", 4)), 2u);
  EXPECT_EQ(FindNonText("a\x7f"), 1u);
  EXPECT_EQ(FindNonText("\xc0\xaf"), 0u);          // overlong "/"
  EXPECT_EQ(FindNonText("\xe0\x80\xaf"), 0u);      // the same in three bytes
  EXPECT_EQ(FindNonText("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(FindNonText("\xf4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(FindNonText("ab\xe2\x82"), 2u);        // cut off
}

}  // namespace
}  // namespace railyard
