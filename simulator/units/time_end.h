// SPDX-License-Identifier: GPL-2.0-only
// Defines the end of simulated time, which is an outcome of a run in its own right (ADR 0109), and
// sums of times that stay in range near it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simulator/units/units.h"

namespace railyard {

// The last instant at which events happen: 105 days.
inline constexpr int64_t kTimeEndPs = int64_t{105} * 24 * 3600 * kPsPerSecond;
// The value of sums beyond the end. Up to a day can be added to it without overflow.
inline constexpr int64_t kAfterEndPs = kTimeEndPs + int64_t{3600} * kPsPerSecond;
static_assert(kNeverPs - kAfterEndPs > int64_t{24} * 3600 * kPsPerSecond);

// Returns time_ps + delay_ps, at most kAfterEndPs. Precondition: delay_ps >= 0.
constexpr int64_t SumPs(int64_t time_ps, int64_t delay_ps) {
  int64_t sum_ps = 0;
  if (__builtin_add_overflow(time_ps, delay_ps, &sum_ps)) return kAfterEndPs;
  return std::min(sum_ps, kAfterEndPs);
}

// Returns the time, at a share of full speed above 0, of work that takes time_ps at full speed; at
// most kAfterEndPs.
inline int64_t AtShareOfSpeedPs(int64_t time_ps, double share) {
  const double slowed_ps = static_cast<double>(time_ps) / share;
  return slowed_ps < static_cast<double>(kAfterEndPs) ? std::llround(slowed_ps) : kAfterEndPs;
}

}  // namespace railyard
