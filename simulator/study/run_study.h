// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs and gathers their figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/study.h"

namespace railyard {

struct StudyRunResult {
  int exit = -1;                               // of `railyard run`
  std::string status;                          // "COMPLETED", …; empty if it left no result
  std::vector<std::optional<double>> figures;  // as Study::figures; nullopt: null, or none there
};

// Loads the scenario of every point as `run` would, `jobs` at a time. What it finds wrong is a
// finding: of an axis's value at its place in the study.
void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics);

struct StudyResult {
  std::vector<StudyRunResult> runs;    // as RunsOf()
  std::string interruption;            // why not all have run; empty: they have
  std::vector<size_t> Failed() const;  // runs that ended without a result
  // Figures that no run with a result has.
  std::vector<std::string> Absent(const Study& study) const;
};

// Where the results of a run go, and PATH.log what it printed.
std::string RunPath(const std::string& directory, size_t run);

// Each run's results go to DIRECTORY/runs/NUMBER, what it printed to DIRECTORY/runs/NUMBER.log.
// Throws EnvironmentError where the environment fails.
StudyResult RunStudy(const Study& study, const std::string& directory, uint32_t jobs);

// DIRECTORY/points.csv: a row per run. DIRECTORY/statistics.csv: a row per point and figure, over
// the seeds.
void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory);

}  // namespace railyard
