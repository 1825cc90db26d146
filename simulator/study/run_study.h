// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs and collects their figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/study/study.h"
#include "simulator/study/study_directory.h"
#include "simulator/study/study_result.h"

namespace railyard {

struct StudyResult {
  std::vector<StudyRunResult> runs;    // as RunsOf()
  std::string interruption;            // why not all have run; empty: they have
  std::vector<size_t> Failed() const;  // runs that ended without a result
  // Returns a run's figure, if it has one; with a point, those of all its runs that have one.
  std::optional<double> ValueOf(size_t run, size_t figure) const;
  std::vector<double> ValuesAt(const Study& study, size_t point, size_t figure) const;
  // Returns the figures that no run with a result has.
  std::vector<std::string> Absent(const Study& study) const;
};

// The progress of a study.
struct StudyProgress {
  size_t runs = 0;    // in all
  size_t kept = 0;    // runs whose results existed before
  size_t done = 0;    // runs that have ended since
  size_t failed = 0;  // those of them that left no result
};

// Returns the arguments of the `railyard run` that is a run of the study, results in `out`.
std::vector<std::string> CommandOf(const Study& study, const StudyRun& run, const std::string& out);

// The work of an executor, which runs `left` and reports each run when it has ended.
struct StudyWork {
  const Study& study;
  const std::vector<StudyRun>& runs;
  std::vector<size_t> left;  // into runs
  const std::string& directory;
  // Holds by run the key of a fault-free run that it shares (SharedFaultFreeKeys()), else empty.
  std::vector<std::string> fault_free_keys;
  std::function<void(size_t run, const StudyRunResult& result)> on_ended;

  // As CommandOf() above, with the file of the fault-free run.
  std::vector<std::string> CommandOf(size_t run, const std::string& out) const;
};
using StudyExecutor = std::function<void(const StudyWork& work)>;

// Runs what is not done in `directory`; each run's results go to its RunPath(). `on_progress` is
// called whenever one has ended. Throws EnvironmentError if the environment fails.
StudyResult RunStudy(const Study& study, const StudyDirectory& directory,
                     const StudyExecutor& executor,
                     const std::function<void(const StudyProgress&)>& on_progress);

// The real time that one run of a study takes here.
struct RunCost {
  size_t run = 0;
  double seconds = 0;
  bool is_cut_off = false;  // it takes longer than that
};

// Runs these runs one after the other, each for at most the given time, and discards their results.
std::vector<RunCost> MeasureRuns(const Study& study, const std::vector<size_t>& numbers,
                                 int64_t limit_seconds);

// Writes DIRECTORY/points.csv, statistics.csv and study.sqlite, which has both and other tables
// (study_tables.h).
void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory);

}  // namespace railyard
