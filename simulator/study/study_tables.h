// SPDX-License-Identifier: GPL-2.0-only
// The tables of a study's results, each defined once: CSV files and study.sqlite are two forms.
#pragma once

#include <string>
#include <vector>

#include "analysis/metrics/bootstrap.h"
#include "analysis/writers/result_tables.h"
#include "simulator/study/run_study.h"

namespace railyard {

// The study, its result and this must outlive the tables.
class StudyTables {
 public:
  // `directory` is that of the study.
  StudyTables(const Study& study, const StudyResult& result, const std::string& directory);

  // Returns points.csv: a row per run that has ended.
  ResultTable RunRows() const;
  // Returns the table `points`: the same rows, with axes of numbers as numbers, and what each run
  // took.
  ResultTable RunRowsWithCost() const;
  // Returns a row per point and figure over the seeds: Student's t, order statistics.
  ResultTable Statistics() const;
  // Returns a row per run that left no result: exit status, reason, output and the command that
  // repeats it.
  ResultTable Failed() const;
  // Returns a row per point and figure that some run has: the mean with its bootstrap interval.
  ResultTable Means() const;
  // Returns a row per point, figure and list of values that is not at its first. A row has the mean
  // difference to the point that has the first value and is equal otherwise, seed by seed, with its
  // bootstrap interval.
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
