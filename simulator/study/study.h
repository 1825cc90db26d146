// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/expression.h"

namespace railyard {

// Names the source of an axis's values.
enum class AxisSource : uint8_t {
  kValues,
  kRange,
  kLogRange,
  kUniform,
  kLogUniform,
  kChoice,
  kExpression,
  kPoints,     // only the study's named points give it values
  kScenario,   // the names of the study's scenarios
  kPointName,  // the names of named points; empty for other points
};

// Names the columns of statistics.csv that hold a figure's statistics, in order.
inline constexpr std::array<const char*, 12> kStatisticColumns = {
    "mean", "mean_low", "mean_high", "p50", "p50_low", "p50_high",
    "p90",  "p90_low",  "p90_high",  "p99", "p99_low", "p99_high"};

struct StudyAxis {
  std::string name{};
  std::vector<std::string> fields{};
  std::string unit{};  // behind a value in fields
  AxisSource source = AxisSource::kValues;
  std::string path{};  // in the study's file: "axes[0]"
  // The axis's values, in order; empty if they follow from other axes or named points.
  std::vector<std::string> values{};
  std::vector<SourceLocation> where{};  // of each value, or one for all
  std::optional<Expression> expression{};
  // Axes with the same number advance together; nullopt if its values follow from other axes or
  // from named points.
  std::optional<size_t> dimension{};

  // Returns true if the values were drawn.
  bool IsDrawn() const;
};

struct StudyScenario {
  std::string name;  // the value of the axis "scenario"
  std::string path;
  SourceLocation where;  // where it is named
};

// Describes a checked study: it has a scenario, every axis has fields and values, and figures are
// named as in a summary.json. CheckRuns (study_check.h) checks that the scenario accepts the
// values.
struct Study {
  std::string name;
  std::vector<StudyScenario> scenarios;  // if there are several, one of the axes is kScenario
  std::vector<std::string> sets;
  std::vector<SourceLocation> set_places;  // where each of `sets` stands
  std::vector<StudyAxis> axes;
  std::vector<std::vector<std::string>> points;  // the values of all axes, without units
  uint32_t seeds = 1;
  uint64_t first_seed = 1;
  std::vector<std::string> figures;
  bool no_baseline = false;

  size_t run_count() const { return points.size() * seeds; }
  // Returns the paths of its scenarios, for people.
  std::string ScenarioPaths() const;
};

// Describes a run: the values of the axes, and a seed. The study must outlive it.
struct StudyRun {
  uint64_t point = 0;  // into Study::points
  std::span<const std::string> values{};
  uint64_t seed = 1;
};

inline constexpr uint64_t kStudyRunsMax = 1'000'000;
// This limits the number of axes and figures, which are columns of one table.
inline constexpr size_t kStudyColumnsMax = 1'000;
// This limits the size of all settings of a run, because they are passed on a command line.
inline constexpr size_t kStudySetsBytesMax = 64 << 10;

// Reads and checks the study in a file. Returns nullopt after an error.
std::optional<Study> LoadStudy(const std::string& path, Diagnostics& diagnostics);

// Returns all runs of a study, point by point, with the seeds of each point in order.
std::vector<StudyRun> RunsOf(const Study& study);

// Returns the scenario of a run.
const StudyScenario& ScenarioOf(const Study& study, const StudyRun& run);

// Returns the settings of a run, "FIELD=VALUE", beginning with its seed.
std::vector<std::string> SetsOf(const Study& study, const StudyRun& run);

// Returns the point's values for people, "loss=0.02, window=7"; empty without axes.
std::string PointName(const Study& study, const StudyRun& run);

}  // namespace railyard
