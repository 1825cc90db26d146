// SPDX-License-Identifier: GPL-2.0-only
// Computes metrics that characterize the traffic of a run. docs/results.md defines them.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/metrics/statistics.h"
#include "analysis/result/run_result.h"

namespace railyard {

// Summarizes message sizes in bytes, each counted as often as it occurs.
struct SizeStatistics {
  uint64_t count = 0;
  double mean = 0;
  uint64_t min = 0;
  uint64_t p50 = 0;
  uint64_t p90 = 0;
  uint64_t p99 = 0;
  uint64_t p999 = 0;
  uint64_t max = 0;
};

struct TrafficFigures {
  double pair_entropy_bits = 0;              // of the distribution of payload over ordered pairs
  std::optional<double> pair_entropy_share;  // relative to that of an even matrix over all pairs
  uint64_t links_used = 0;
  // Statistics over the links with payload; for the latter two, over the links with two or more
  // bursts.
  std::optional<StretchStatistics> flow_entropy_bits;
  std::optional<DurationStatistics> link_periods;
  std::optional<StretchStatistics> link_duty;
  std::optional<SizeStatistics> message_sizes;
  uint64_t iterations = 0;  // that ended, of all jobs
  std::optional<StretchStatistics> drift;
  std::optional<StretchStatistics> all_to_all_drift;
  std::optional<StretchStatistics> all_to_all_imbalance;
};
TrafficFigures TrafficOf(const RunResult& result);

}  // namespace railyard
