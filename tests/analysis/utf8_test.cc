// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/utf8.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

TEST(ToValidUtf8Test, LeavesValidTextAlone) {
  const std::string text = "a \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x86";  // 1 to 4 bytes each
  EXPECT_EQ(ToValidUtf8(text), text);
}

TEST(ToValidUtf8Test, ReplacesWhatRfc3629Forbids) {
  EXPECT_EQ(ToValidUtf8("\x80"), kReplacement);  // lone continuation byte
  EXPECT_EQ(ToValidUtf8("\xC3"), kReplacement);  // cut sequence
  EXPECT_EQ(ToValidUtf8("\xFF"), kReplacement);  // no lead byte at all
  const auto times = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += kReplacement;
    return text;
  };
  EXPECT_EQ(ToValidUtf8("\xC0\xAF"), times(2));          // overlong "/"
  EXPECT_EQ(ToValidUtf8("\xE0\x80\xAF"), times(3));      // overlong, three bytes
  EXPECT_EQ(ToValidUtf8("\xED\xA0\x80"), times(3));      // surrogate
  EXPECT_EQ(ToValidUtf8("\xF4\x90\x80\x80"), times(4));  // above U+10FFFF
  EXPECT_EQ(ToValidUtf8("\xE2\x82x"), times(2) + "x");   // cut before the last byte
}

TEST(ToTerminalTextTest, CutsWhatIsTooLong) {
  EXPECT_EQ(ToTerminalText("abcdef", 6), "abcdef");
  EXPECT_EQ(ToTerminalText("abcdefg", 6), "abcd..");
  EXPECT_EQ(ToTerminalText("\xC3\xA9\xC3\xA9\xC3\xA9", 2), "..");
  EXPECT_EQ(ToTerminalText("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3), "\xC3\xA9..");
}

TEST(ToTerminalTextTest, LetsNoControlCharacterThrough) {
  EXPECT_EQ(ToTerminalText("a\x1B[31mb\n\t\x7F", 20), "a?[31mb???");
  EXPECT_EQ(ToTerminalText("\xC2\x9B", 20), "?");  // CSI as one C1 character
}

}  // namespace
}  // namespace railyard
