// SPDX-License-Identifier: GPL-2.0-only
// Determines the intervals in which a fault is active: once, periodic, recorded, or random.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/faults/fault_index.h"
#include "simulator/units/job_ids.h"
#include "simulator/units/units.h"

namespace railyard {

struct FaultInterval {
  int64_t from_ps = 0;
  int64_t until_ps = kNeverPs;  // kNeverPs if permanent
  bool operator==(const FaultInterval&) const = default;
};

// Names the event from which a timeline's times count, instead of time 0.
struct FaultAnchor {
  bool is_set() const { return fault != FaultIndex::kNone || !collectives.empty(); }
  FaultIndex fault = FaultIndex::kNone;      // its first begin
  bool at_end = false;                       // its last end instead
  std::vector<CollectiveIndex> collectives;  // the first that gets there counts
  double progress = 0;  // share of its payload received; 0: its first rank begins
};

// Describes the intervals of a fault. They do not overlap and are in order. Draws are keyed with
// the fault's seed and the interval's number.
struct FaultTimeline {
  FaultAnchor anchor;
  // The first interval, counted from the anchor or time 0.
  int64_t at_ps = 0;
  int64_t until_ps = kNeverPs;
  // The time from an interval's end until the links carry packets again.
  int64_t training_ps = 0;
  // The period with which the interval repeats; each is delayed by less than the jitter.
  int64_t period_ps = 0;  // 0 without repetition
  int64_t jitter_ps = 0;
  uint64_t count = 1;  // total number of intervals
  // Recorded intervals, ascending, counted like the above; if there are any, they replace the first
  // interval and its repetitions.
  std::vector<FaultInterval> recorded;
  // If mean_between_ps is not 0, random intervals replace the first interval and its repetitions.
  // From at_ps to until_ps, times between failures and times to repair are drawn from exponential
  // distributions with these means.
  double mean_between_ps = 0;  // a double, because that of a cable is about a century
  double mean_repair_ps = 0;

  bool IsOnceAtGivenTime() const {
    return !anchor.is_set() && period_ps == 0 && mean_between_ps == 0 && recorded.size() <= 1;
  }

  // Returns interval `number`, counted from the anchor; nullopt if there is none. `before` must be
  // the previous one unless `number` is 0. `training_ps` is not included.
  std::optional<FaultInterval> Interval(uint64_t number, const std::optional<FaultInterval>& before,
                                        uint64_t seed) const;
};

}  // namespace railyard
