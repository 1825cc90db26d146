// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/number_rows.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/csv_line.h"
#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// RFC 4180: quoted cells may hold commas, and quotes doubled.
TEST(CsvLineTest, QuotedCellsHoldCommasAndQuotes) {
  const auto cells = SplitCsvLine("a,\"b,c\",\"say \"\"d\"\"\",\r");
  ASSERT_TRUE(cells);
  ASSERT_EQ(cells->size(), 4u);
  EXPECT_EQ((*cells)[1].text, "b,c");
  EXPECT_EQ((*cells)[1].column, 3);
  EXPECT_EQ((*cells)[2].text, "say \"d\"");
  EXPECT_EQ((*cells)[3].text, "");
  EXPECT_FALSE(SplitCsvLine("a,\"b"));
}

class NumberRowsTest : public ::testing::Test {
 protected:
  std::string Read(const std::string& text) {
    const TextFile file(text, "rows.csv");
    Diagnostics diagnostics;
    rows_.clear();
    const auto add = [this](const std::vector<uint64_t>& row) {
      rows_.push_back(row);
      return row[0] == 13 ? std::string("is unlucky") : std::string();
    };
    const bool is_right = ReadNumberRows(file.path(), {{"x", 99}, {"y", 9}}, add, diagnostics);
    EXPECT_EQ(is_right, !diagnostics.HasErrors());
    return file.WithoutPath(diagnostics.ToString());
  }

  std::vector<std::vector<uint64_t>> rows_;
};

TEST_F(NumberRowsTest, ColumnsAreFoundByTheirNames) {
  EXPECT_EQ(Read("y,name,x\r\n1,\"a,b\",20\r\n\r\n3,c,40\n"), "");
  EXPECT_THAT(rows_, ElementsAre(ElementsAre(20, 1), ElementsAre(40, 3)));
}

TEST_F(NumberRowsTest, MistakesAreWhereTheyAre) {
  EXPECT_EQ(Read("x,y,x\n1,2,3\n"), ":1:5: error: column x is given twice (expected it once)\n");
  EXPECT_EQ(Read(""), ":1:1: error: the file is empty (expected a first line \"x,y\")\n");
  EXPECT_EQ(Read("x,z\n"),
            ":1:1: error: there is no column y (expected \"x,y\", among others or not)\n");
  EXPECT_EQ(Read("x,y\n1\n1,-1\n100,1\n13,1\n99999999999999999999,1\n\"1,1\n"),
            ":2:1: error: 1 cells (expected 2, as in the first line)\n"
            ":3:3: error: y: \"-1\" (expected a whole number, 0 to 9)\n"
            ":4:1: error: x: \"100\" (expected a whole number, 0 to 99)\n"
            ":5:1: error: is unlucky\n"
            ":6:1: error: x: \"99999999999999999999\" (expected a whole number, 0 to 99)\n"
            ":7:1: error: a quote is not closed\n");
  EXPECT_THAT(Read(std::string("x,y\n1,2\0003\n", 10)), HasSubstr(":2:3: error: y: "));
  EXPECT_EQ(Read("x,y\n" + std::string(5000, '1') + "\n"),
            ":2:1: error: the line is too long (expected lines of 4096 bytes at most)\n");
}

TEST_F(NumberRowsTest, FindingsAreLimited) {
  std::string text = "x,y\n";
  for (int i = 0; i < 100; ++i) text += "a,b\n";
  const std::string findings = Read(text);
  EXPECT_EQ(std::count(findings.begin(), findings.end(), '\n'), 20);
}

}  // namespace
}  // namespace railyard
