// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/csv_table.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

constexpr std::array<std::string_view, 2> kNameAndAge = {"name", "age"};

// Reads tables of names and ages, and refuses the age x.
class CsvTableTest : public ::testing::Test {
 protected:
  // Returns the findings, without the path of the file.
  std::string Read(const std::string& text) {
    const TextFile file(text, "rows.csv");
    Diagnostics diagnostics;
    CsvTable table(file.path(), "a table of ages", kNameAndAge, diagnostics);
    names_.clear();
    table.Read([&](const std::vector<CsvCell>& cells) {
      if (cells[1].text == "x") table.Refuse(cells[1], 1, "expected a number");
      names_.push_back(cells[0].text);
      lines_ += std::to_string(table.line());
    });
    findings_ = table.finding_count();
    std::string findings = diagnostics.ToString();
    for (size_t at = 0; (at = findings.find(file.path())) != std::string::npos;) {
      findings.erase(at, file.path().size());
    }
    return findings;
  }

  std::vector<std::string> names_;
  std::string lines_;
  int findings_ = 0;
};

TEST_F(CsvTableTest, RowsHaveTheirLinesAndBlankOnesAreNone) {
  EXPECT_EQ(Read("name,age\r\na,1\r\n\r\n\"b,c\",2\n\nd,3"), "");
  EXPECT_THAT(names_, ElementsAre("a", "b,c", "d"));
  EXPECT_EQ(lines_, "246");
}

TEST_F(CsvTableTest, EveryMistakeIsAtItsCell) {
  EXPECT_EQ(Read("name,age\na,x\nb\nc,\"1\nd,2\n"),
            ":2:3: error: age: \"x\" (expected a number)\n"
            ":3:1: error: 1 fields (expected 2)\n"
            ":4:1: error: a quote is not closed\n");
  EXPECT_EQ(findings_, 3);
  EXPECT_THAT(names_, ElementsAre("a", "d"));
}

TEST_F(CsvTableTest, OtherFilesAreOneFinding) {
  EXPECT_EQ(Read("name,years\na,1\n"),
            ":1:1: error: not the column names of a table of ages (expected \"name,age\")\n");
  EXPECT_EQ(Read(""), ":1:1: error: the file is empty (expected a line of column names)\n");
  Diagnostics diagnostics;
  CsvTable("/", "a table of ages", kNameAndAge, diagnostics).Read([](const auto&) { FAIL(); });
  EXPECT_EQ(diagnostics.ToString(),
            "/: error: not a file that can be read (expected a table of ages)\n");
}

TEST_F(CsvTableTest, TwentyFindingsEndIt) {
  std::string text = "name,age\n";
  for (int i = 0; i < 30; ++i) text += "a,x\n";
  Read(text);
  EXPECT_EQ(findings_, 20);
}

}  // namespace
}  // namespace railyard
