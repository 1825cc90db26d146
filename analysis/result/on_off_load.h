// SPDX-License-Identifier: GPL-2.0-only
// A load that comes and goes: how long it is there, and how regularly.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace railyard {

struct TimeInterval {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
};

// Intervals that touch or overlap are one burst. A period is from one burst's begin to the next
// one's: nullopt with less than two bursts.
struct OnOffLoad {
  uint64_t bursts = 0;
  int64_t on_ps = 0;
  std::optional<int64_t> period_ps;  // mean, rounded to nearest
  std::optional<double> duty;        // share of the whole periods that it is on
};

// In any order; empty ones count for nothing.
OnOffLoad MeasureOnOff(std::vector<TimeInterval> intervals);

}  // namespace railyard
