// SPDX-License-Identifier: GPL-2.0-only
// Makes the page of a study: its figures across its axes, with confidence bands, and heat maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railyard {

// Summarizes a figure over the runs of a point that have it.
struct PointFigure {
  uint64_t runs = 0;
  double mean = 0;
  std::optional<double> low;  // 95 % bounds of the mean; absent with one run
  std::optional<double> high;
};

struct StudySummary {
  struct Point {
    std::vector<std::string> values;   // of the axes
    std::vector<PointFigure> figures;  // one per figure of the study
  };
  std::string name;
  std::string scenario;  // a path
  std::vector<std::string> axes;
  std::vector<std::string> figures;
  std::vector<Point> points;
  uint64_t seeds = 1;
  uint64_t runs_with_result = 0;
  uint64_t runs_cut_short = 0;  // with a result, of jobs that were aborted or stalled
};

// Returns the page. Throws EnvironmentError if !CanWriteReports().
std::string StudyPage(const StudySummary& study);

}  // namespace railyard
