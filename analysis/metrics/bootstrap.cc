// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/bootstrap.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/metrics/statistics.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr size_t kResamples = 1'000;
constexpr size_t kValuesMin = 8;

}  // namespace

std::optional<Interval> BootstrapInterval(
    size_t count, const std::function<double(std::span<const size_t> picks)>& statistic) {
  if (count < kValuesMin) return std::nullopt;
  std::vector<double> results;
  results.reserve(kResamples);
  std::vector<size_t> picks(count);
  uint64_t draw = 0;
  for (size_t resample = 0; resample < kResamples; ++resample) {
    for (size_t& pick : picks) pick = ScaleTo(Mix64(draw++), count);
    results.push_back(statistic(picks));
  }
  std::sort(results.begin(), results.end());
  return Interval{.low = results[NearestRankIndex(kResamples, 25)],
                  .high = results[NearestRankIndex(kResamples, 975)]};
}

}  // namespace railyard
