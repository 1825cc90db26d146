// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study_tables.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

// A table's rows by column.
class Rows {
 public:
  explicit Rows(const ResultTable& table) : columns_(table.columns) {
    for (size_t row = 0; row < table.row_count; ++row) {
      table.append_row(row, rows_.emplace_back());
      EXPECT_EQ(rows_.back().size(), columns_.size());
    }
  }
  size_t size() const { return rows_.size(); }
  const Cell& At(size_t row, std::string_view column) const {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == column) return rows_.at(row).at(i);
    }
    ADD_FAILURE() << "no column " << column;
    return rows_.at(0).at(0);
  }
  double Real(size_t row, std::string_view column) const {
    return std::get<double>(At(row, column));
  }
  int64_t Integer(size_t row, std::string_view column) const {
    return std::get<int64_t>(At(row, column));
  }
  std::string Text(size_t row, std::string_view column) const {
    return std::string(std::get<std::string_view>(At(row, column)));
  }

 private:
  std::vector<ResultColumn> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Losses 0 and 0.1 by kinds p and q, ten seeds each. At a loss each figure is 5 higher, seed by
// seed; among seeds they are 0, 1, …, 9 and among kinds 100 apart.
class StudyTablesTest : public ::testing::Test {
 protected:
  StudyTablesTest() {
    study_.scenarios = {{.name = "base", .path = "base.textproto", .where = {}}};
    study_.figures = {"x"};
    study_.seeds = 10;
    study_.axes = {{.name = "loss", .fields = {"l"}, .values = {"0", "0.1"}, .dimension = 0},
                   {.name = "kind", .fields = {"k"}, .values = {"p", "q"}, .dimension = 1}};
    study_.points = {{"0", "p"}, {"0", "q"}, {"0.1", "p"}, {"0.1", "q"}};
    for (int point = 0; point < 4; ++point) {
      for (int seed = 0; seed < 10; ++seed) {
        StudyRunResult& run = result_.runs.emplace_back();
        run = {.exit = 0, .has_result = true, .status = "COMPLETED"};
        run.figures = {seed + (point >= 2 ? 5.0 : 0.0) + (point % 2 == 1 ? 100.0 : 0.0)};
        run.seconds = 2;
        run.peak_memory_bytes = 1'000;
      }
    }
  }
  StudyTables Tables() const { return {study_, result_, "out"}; }

  Study study_;
  StudyResult result_;
};

TEST_F(StudyTablesTest, DifferencesPairSeedBySeed) {
  const StudyTables tables = Tables();
  const Rows rows(tables.Differences());
  // Two points with a loss against two without, and two of kind q against two of kind p.
  ASSERT_EQ(rows.size(), 4u);
  for (size_t row = 0; row < 4; ++row) {
    const bool is_loss = rows.Text(row, "axis") == "loss";
    EXPECT_EQ(rows.Integer(row, "point"), rows.Integer(row, "reference_point") + (is_loss ? 2 : 1));
    EXPECT_EQ(rows.Integer(row, "pairs"), 10);
    // All pairs have the same difference, so it is certain, however seeds differ.
    for (const char* const column : {"difference", "low", "high"}) {
      EXPECT_DOUBLE_EQ(rows.Real(row, column), is_loss ? 5 : 100);
    }
  }
}

TEST_F(StudyTablesTest, ASeedThatOnlyOnePointHasIsNoPair) {
  result_.runs[3].figures = {std::nullopt};   // of point 0
  result_.runs[24].figures = {std::nullopt};  // of point 2
  const StudyTables tables = Tables();
  const Rows rows(tables.Differences());
  EXPECT_EQ(rows.Integer(0, "reference_point"), 0);
  EXPECT_EQ(rows.Integer(0, "point"), 2);
  EXPECT_EQ(rows.Integer(0, "pairs"), 8);
  EXPECT_DOUBLE_EQ(rows.Real(0, "difference"), 5);
}

TEST_F(StudyTablesTest, MeansHaveBootstrapIntervals) {
  const StudyTables tables = Tables();
  const Rows rows(tables.Means());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_DOUBLE_EQ(rows.Real(0, "mean"), 4.5);
  // The mean of ten values that are evenly spread over 0 to 9 has a deviation of sqrt(8.25/10).
  EXPECT_NEAR(rows.Real(0, "low"), 4.5 - 1.96 * std::sqrt(0.825), 0.25);
  EXPECT_NEAR(rows.Real(0, "high"), 4.5 + 1.96 * std::sqrt(0.825), 0.25);
}

TEST_F(StudyTablesTest, FewSeedsHaveNoInterval) {
  study_.seeds = 2;
  result_.runs.resize(8);
  const StudyTables tables = Tables();
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Rows(tables.Means()).At(0, "low")));
}

TEST_F(StudyTablesTest, AxesOfNumbersAreNumbersInTheDatabase) {
  const StudyTables tables = Tables();
  const Rows text(tables.RunRows());
  const Rows typed(tables.RunRowsWithCost());
  ASSERT_EQ(text.size(), 40u);
  EXPECT_EQ(text.Text(20, "loss"), "0.1");
  EXPECT_DOUBLE_EQ(typed.Real(20, "loss"), 0.1);
  EXPECT_EQ(typed.Text(20, "kind"), "p");
  EXPECT_EQ(typed.Real(20, "seconds"), 2);
  EXPECT_EQ(typed.Integer(20, "peak_memory_bytes"), 1'000);
}

TEST_F(StudyTablesTest, AFailedRunHasItsReasonAndTheCommandThatRepeatsIt) {
  result_.runs[0] = {.exit = 137, .figures = {std::nullopt}};
  result_.runs[39] = {.exit = kTimeLimitExit, .status = kTimeLimit, .figures = {std::nullopt}};
  result_.runs[20] = {.exit = 3, .has_result = true, .status = "JOB_ABORTED", .figures = {7}};
  const StudyTables tables = Tables();
  const Rows rows(tables.Failed());
  ASSERT_EQ(rows.size(), 2u) << "a job that is aborted is a result";
  EXPECT_EQ(rows.Integer(0, "exit"), 137);
  EXPECT_EQ(rows.Text(0, "reason"), "ended by signal 9");
  EXPECT_EQ(rows.Text(0, "log_file"), "out/runs/000000.log");
  EXPECT_EQ(rows.Text(1, "reason"), "ended at its time limit");
  EXPECT_EQ(rows.Text(1, "command"),
            "railyard run base.textproto --quiet --no-report --out out/runs/000039 --set seed=10 "
            "--set l=0.1 --set k=q");
}

TEST_F(StudyTablesTest, RunsThatDidNotEndHaveNoRow) {
  result_.runs[5] = {};
  EXPECT_EQ(Rows(Tables().RunRows()).size(), 39u);
}

}  // namespace
}  // namespace railyard
