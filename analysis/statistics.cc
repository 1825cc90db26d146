// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/statistics.h"

#include <algorithm>
#include <numeric>

#include "simulator/diagnostics/check.h"

namespace railyard {

size_t NearestRankIndex(size_t count, uint32_t permille) {
  SIM_CHECK(count > 0 && permille > 0 && permille <= 1000, "no such percentile");
  const size_t rank = (count * permille + 999) / 1000;  // counts from 1
  return rank - 1;
}

namespace {

template <typename T>
T Percentile(const std::vector<T>& sorted, uint32_t permille) {
  return sorted[NearestRankIndex(sorted.size(), permille)];
}

}  // namespace

std::optional<DurationStatistics> SummarizeDurations(std::vector<int64_t> durations_ps) {
  if (durations_ps.empty()) return std::nullopt;
  std::sort(durations_ps.begin(), durations_ps.end());
  return DurationStatistics{.min_ps = durations_ps.front(),
                            .p50_ps = Percentile(durations_ps, 500),
                            .p90_ps = Percentile(durations_ps, 900),
                            .p99_ps = Percentile(durations_ps, 990),
                            .p999_ps = Percentile(durations_ps, 999),
                            .max_ps = durations_ps.back()};
}

std::optional<StretchStatistics> SummarizeStretches(std::vector<double> stretches) {
  if (stretches.empty()) return std::nullopt;
  std::sort(stretches.begin(), stretches.end());
  const double sum = std::accumulate(stretches.begin(), stretches.end(), 0.0);
  return StretchStatistics{.mean = sum / static_cast<double>(stretches.size()),
                           .p50 = Percentile(stretches, 500),
                           .p99 = Percentile(stretches, 990),
                           .p999 = Percentile(stretches, 999),
                           .max = stretches.back()};
}

std::optional<RateStatistics> SummarizeRates(std::vector<double> rates) {
  if (rates.empty()) return std::nullopt;
  std::sort(rates.begin(), rates.end());
  return RateStatistics{.min = rates.front(), .p50 = Percentile(rates, 500), .max = rates.back()};
}

}  // namespace railyard
