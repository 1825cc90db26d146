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
  std::string interruption;            // why not all have run; empty if they have
  std::vector<size_t> Failed() const;  // runs that ended without a result
  // These return a figure of a run, if it has it, and of all runs of a point that have it.
  std::optional<double> ValueOf(size_t run, size_t figure) const;
  std::vector<double> ValuesAt(const Study& study, size_t point, size_t figure) const;
  // Returns the figures that no run with a result has.
  std::vector<std::string> Absent(const Study& study) const;
};

// Describes the progress of a study.
struct StudyProgress {
  size_t runs = 0;    // in total
  size_t kept = 0;    // runs whose results existed before
  size_t done = 0;    // runs that have ended since
  size_t failed = 0;  // of these, runs that left no result
};

// Returns the arguments of `railyard` for a run of the study that writes its results to `out`.
std::vector<std::string> CommandOf(const Study& study, const StudyRun& run, const std::string& out);

// Describes the work of an executor, which runs `left` and reports each run when it has ended.
struct StudyWork {
  const Study& study;
  const std::vector<StudyRun>& runs;
  std::vector<size_t> left;  // indices into `runs`
  const std::string& directory;
  // Holds, by run, the key of the fault-free run that it shares; empty if it shares none
  // (SharedFaultFreeKeys()).
  std::vector<std::string> fault_free_keys;
  std::function<void(size_t run, const StudyRunResult& result)> on_ended;

  // Returns the arguments of the above, and the file of the shared fault-free run, if any.
  std::vector<std::string> CommandOf(size_t run, const std::string& out) const;
};
using StudyExecutor = std::function<void(const StudyWork& work)>;

// Runs the runs that are not done in `directory`; each run's results go to its RunPath().
// `on_progress` is called whenever a run has ended. If a signal requests the end, the result has
// the runs so far. Throws EnvironmentError if the environment fails.
StudyResult RunStudy(const Study& study, const StudyDirectory& directory,
                     const StudyExecutor& executor,
                     const std::function<void(const StudyProgress&)>& on_progress);

// Holds the real time that one run of a study takes on this machine.
struct RunCost {
  size_t run = 0;
  double seconds = 0;
  bool is_cut_off = false;  // it was ended after that time
};

// Runs these runs one after the other, each for about the given time at most, and discards their
// results. Throws Interrupted if a signal requests the end.
std::vector<RunCost> MeasureRuns(const Study& study, const std::vector<size_t>& numbers,
                                 int64_t limit_seconds);

// Writes DIRECTORY/points.csv, statistics.csv and study.sqlite, which has both and other tables
// (study_tables.h).
void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory);

}  // namespace railyard
