// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/statistics.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "simulator/diagnostics/check.h"

namespace railyard {

size_t NearestRankIndex(size_t count, uint32_t permille) {
  SIM_CHECK(count > 0 && permille > 0 && permille <= 1000, "no such percentile");
  const size_t rank = (count * permille + 999) / 1000;  // counts from 1
  return rank - 1;
}

namespace {

// Percentiles of unsorted values. Precondition: they are requested in ascending order.
template <typename T>
class Percentiles {
 public:
  explicit Percentiles(std::vector<T>& values) : values_(values) {}

  T At(uint32_t permille) {
    const auto nth =
        values_.begin() + static_cast<std::ptrdiff_t>(NearestRankIndex(values_.size(), permille));
    std::nth_element(in_place_until_, nth, values_.end());
    in_place_until_ = nth;
    return *nth;
  }

 private:
  std::vector<T>& values_;
  typename std::vector<T>::iterator in_place_until_ = values_.begin();
};

}  // namespace

std::optional<DurationStatistics> SummarizeDurations(std::vector<int64_t> durations_ps) {
  if (durations_ps.empty()) return std::nullopt;
  const auto [min, max] = std::ranges::minmax(durations_ps);
  Percentiles percentiles(durations_ps);
  DurationStatistics statistics{.min_ps = min, .max_ps = max};
  statistics.p50_ps = percentiles.At(500);
  statistics.p90_ps = percentiles.At(900);
  statistics.p99_ps = percentiles.At(990);
  statistics.p999_ps = percentiles.At(999);
  return statistics;
}

std::optional<StretchStatistics> SummarizeStretches(std::vector<double> stretches) {
  if (stretches.empty()) return std::nullopt;
  // Without faults all are 1.
  if (!std::ranges::is_sorted(stretches)) std::ranges::sort(stretches);
  const double sum = std::accumulate(stretches.begin(), stretches.end(), 0.0);
  const auto percentile = [&](uint32_t permille) {
    return stretches[NearestRankIndex(stretches.size(), permille)];
  };
  return StretchStatistics{.mean = sum / static_cast<double>(stretches.size()),
                           .p50 = percentile(500),
                           .p99 = percentile(990),
                           .p999 = percentile(999),
                           .max = stretches.back()};
}

std::optional<RateStatistics> SummarizeRates(std::vector<double> rates) {
  if (rates.empty()) return std::nullopt;
  const auto [min, max] = std::ranges::minmax(rates);
  return RateStatistics{.min = min, .p50 = Percentiles(rates).At(500), .max = max};
}

}  // namespace railyard
