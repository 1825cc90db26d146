// SPDX-License-Identifier: GPL-2.0-only
// Computes order statistics by nearest rank: every figure is a value that occurred, never an
// interpolation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace railyard {

// Returns the index of the nearest-rank percentile in a sorted list, i.e. that of the smallest
// value such that at least permille/1000 of all values do not exceed it. Precondition: count > 0
// and permille in 1..1000.
size_t NearestRankIndex(size_t count, uint32_t permille);

struct DurationStatistics {
  int64_t min_ps = 0;
  int64_t p50_ps = 0;
  int64_t p90_ps = 0;
  int64_t p99_ps = 0;
  int64_t p999_ps = 0;
  int64_t max_ps = 0;
};

// Summarizes ratios. The mean is the sum of the sorted values over their number, so it does not
// depend on their order, and is exactly 1 if every value is.
struct StretchStatistics {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

struct RateStatistics {
  double min = 0;
  double p50 = 0;
  double max = 0;
};

// Summarizes values in any order; nullopt if there are none.
std::optional<DurationStatistics> SummarizeDurations(std::vector<int64_t> durations_ps);
std::optional<StretchStatistics> SummarizeStretches(std::vector<double> stretches);
std::optional<RateStatistics> SummarizeRates(std::vector<double> rates);

}  // namespace railyard
