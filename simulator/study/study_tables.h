// SPDX-License-Identifier: GPL-2.0-only
// Defines the tables of a study's results, once for both of their forms: CSV files and
// study.sqlite.
#pragma once

#include <string>
#include <vector>

#include "analysis/metrics/bootstrap.h"
#include "analysis/writers/result_tables.h"
#include "simulator/study/run_study.h"

namespace railyard {

// Makes the tables, which the study, its result and this object must outlive.
class StudyTables {
 public:
  // `directory` is that of the study.
  StudyTables(const Study& study, const StudyResult& result, const std::string& directory);

  // Returns points.csv: a row per run that has ended.
  ResultTable RunRows() const;
  // Returns the table `points`: the same rows with numeric axes as numbers, and each run's real
  // time and peak memory.
  ResultTable RunRowsWithCost() const;
  // Returns a row per point and figure: the mean and quantiles over the seeds, with their bounds
  // (sample_statistics.h).
  ResultTable Statistics() const;
  // Returns a row per run that left no result: exit status, reason, output and the command that
  // repeats it.
  ResultTable Failed() const;
  // Returns a row per point and figure that some run has: the mean with its bootstrap interval.
  ResultTable Means() const;
  // Returns a row per point, figure and axis of listed values whose value is not the first. It has
  // the mean difference, seed by seed, from the point that has the first value and is equal
  // otherwise, with its bootstrap interval.
  ResultTable Differences() const;

 private:
  struct Failure {
    size_t run = 0;
    std::string reason;
    std::string log_file;
    std::string log;  // its end
    std::string command;
  };
  struct Mean {
    size_t point = 0;
    size_t figure = 0;
    size_t runs = 0;
    double mean = 0;
    std::optional<Interval> interval{};
    size_t dimension = 0;  // of a difference
    size_t reference = 0;  // the point with the first value
  };

  void AddFailures(const std::string& directory);
  void AddMeans();
  void AddDifferences();
  void AddDifference(size_t point, size_t reference, size_t dimension);
  std::vector<ResultColumn> AxisColumns(ColumnType type) const;
  void AppendAxes(size_t point, bool as_numbers, std::vector<Cell>& cells) const;
  Cell SeedCell(size_t run) const;

  const Study& study_;
  const StudyResult& result_;
  std::vector<StudyRun> runs_;
  std::vector<size_t> ended_;       // runs
  std::vector<bool> is_number_;     // by axis: all its values are
  std::vector<std::string> seeds_;  // by number within a point
  std::vector<std::string> names_;  // of dimensions: their axes
  std::vector<Failure> failures_;
  std::vector<Mean> means_;
  std::vector<Mean> differences_;
};

}  // namespace railyard
