// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs and collects their figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/study.h"
#include "simulator/study/study_directory.h"
#include "simulator/study/study_result.h"

namespace railyard {

// Loads the scenario of every point as `run` would, `jobs` at a time. Mistakes are findings; that
// of an axis's value is at its place in the study.
void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics);

struct StudyResult {
  std::vector<StudyRunResult> runs;    // as RunsOf()
  std::string interruption;            // why not all have run; empty: they have
  std::vector<size_t> Failed() const;  // runs that ended without a result
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

// Runs what is not done in `directory`, `jobs` at a time; each run's results go to its RunPath().
// `on_progress` is called whenever one has ended. Throws EnvironmentError if the environment fails.
StudyResult RunStudy(const Study& study, const StudyDirectory& directory, uint32_t jobs,
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

// Writes DIRECTORY/points.csv, a row per run, and DIRECTORY/statistics.csv, a row per point and
// figure over the seeds.
void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory);

}  // namespace railyard
