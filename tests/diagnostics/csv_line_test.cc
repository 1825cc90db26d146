// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/csv_line.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(CsvLineTest, IsQuotedOnlyWhereItMustBe) {
  const auto field = [](std::string_view text) {
    std::string line;
    AppendCsvField(text, line);
    return line;
  };
  EXPECT_EQ(field("RING/SIMPLE"), "RING/SIMPLE");
  EXPECT_EQ(field("a,b"), "\"a,b\"");
  EXPECT_EQ(field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(field("\r"), "\"\r\"");
  EXPECT_EQ(field(""), "");
}

TEST(CsvLineTest, FieldsAreReadAsTheyWereWritten) {
  const std::vector<std::string> texts = {"plain", "", "a,b", "say \"hi\"", "\"", "two\nlines"};
  std::string line;
  for (const std::string& text : texts) {
    if (&text != &texts.front()) line += ',';
    AppendCsvField(text, line);
  }
  const auto cells = SplitCsvLine(line);
  ASSERT_TRUE(cells.has_value());
  ASSERT_EQ(cells->size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ((*cells)[i].text, texts[i]);
}

}  // namespace
}  // namespace railyard
