// SPDX-License-Identifier: GPL-2.0-only
// Measures a load that comes in bursts: how much of the time it is on, and its period.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace railyard {

struct TimeInterval {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
};

// Describes a load as bursts. Intervals that touch or overlap form one burst. A period lasts from
// the begin of one burst to the begin of the next; it is nullopt with fewer than two bursts.
struct OnOffLoad {
  uint64_t bursts = 0;
  int64_t on_ps = 0;
  std::optional<int64_t> period_ps;  // mean, rounded to nearest
  std::optional<double> duty;        // on-time over the sum of whole periods
};

// Takes intervals in any order; empty ones are ignored.
OnOffLoad MeasureOnOff(std::vector<TimeInterval> intervals);

}  // namespace railyard
