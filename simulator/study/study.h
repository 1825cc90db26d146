// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct StudyAxis {
  std::string name;
  std::vector<std::string> fields;
  std::vector<std::string> values;
  std::vector<SourceLocation> where;  // of each value
};

// A checked study: it has a scenario, every axis has fields and values, and figures are named as in
// a summary.json. CheckRuns (run_study.h) checks that the scenario accepts the values.
struct Study {
  std::string name;
  std::string scenario;  // a path
  SourceLocation where;  // where it is named
  std::vector<std::string> sets;
  std::vector<StudyAxis> axes;
  uint32_t seeds = 1;
  uint64_t first_seed = 1;
  std::vector<std::string> figures;
  bool no_baseline = false;
};

// One run: the values of the axes, and a seed.
struct StudyRun {
  uint64_t point = 0;  // number of the combination of values
  std::vector<std::string> values;
  uint64_t seed = 1;
};

inline constexpr uint64_t kStudyRunsMax = 1'000'000;
// Limit on the size of all settings of a run, because they are passed on a command line.
inline constexpr size_t kStudySetsBytesMax = 64 << 10;

// Returns nullopt after an error.
std::optional<Study> LoadStudy(const std::string& path, Diagnostics& diagnostics);

// Returns all runs of a study, the last axis fastest, seeds within a point.
std::vector<StudyRun> RunsOf(const Study& study);

// Returns the settings of a run, "FIELD=VALUE", its seed first.
std::vector<std::string> SetsOf(const Study& study, const StudyRun& run);

// Returns the point's values for people, "loss=0.02, window=7"; empty without axes.
std::string PointName(const Study& study, const StudyRun& run);

}  // namespace railyard
