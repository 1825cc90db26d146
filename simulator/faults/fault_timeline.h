// SPDX-License-Identifier: GPL-2.0-only
// When a fault holds: once, again and again, as recorded, or by chance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/units/units.h"

namespace railyard {

struct FaultInterval {
  int64_t from_ps = 0;
  int64_t until_ps = kNeverPs;  // kNeverPs: for good
  bool operator==(const FaultInterval&) const = default;
};

// What a timeline's times count from, besides time 0.
struct FaultAnchor {
  static constexpr uint32_t kNone = UINT32_MAX;
  bool is_set() const { return fault != kNone || !collectives.empty(); }
  uint32_t fault = kNone;             // its first begin
  bool at_end = false;                // its last end instead
  std::vector<uint32_t> collectives;  // whichever of them gets there first
  double progress = 0;  // share of the collective's payload received; 0: its first rank begins
};

// Intervals follow one another. Draws are keyed with the fault's seed and the interval's number.
struct FaultTimeline {
  FaultAnchor anchor;
  // The first interval, counted from the anchor or time 0.
  int64_t at_ps = 0;
  int64_t until_ps = kNeverPs;
  // Links need so long beyond an interval's end until they carry again.
  int64_t training_ps = 0;
  // The same again with this period, each later than that by less than the jitter.
  int64_t period_ps = 0;  // 0: no repetition
  int64_t jitter_ps = 0;
  uint64_t count = 1;  // intervals in all
  // In place of all that: recorded intervals, ascending.
  std::vector<FaultInterval> recorded;
  // In place of all that: from at_ps to until_ps, times between failures and to repair are drawn
  // from exponential distributions with these means.
  double mean_between_ps = 0;  // a cable's is a century: beyond what an integer holds
  double mean_repair_ps = 0;

  bool IsOnceAtGivenTime() const {
    return !anchor.is_set() && period_ps == 0 && mean_between_ps == 0 && recorded.size() <= 1;
  }

  // The interval of that number, counted from the anchor; the one before it must be given, but for
  // number 0. nullopt: there is none. Training is not in it.
  std::optional<FaultInterval> Interval(uint64_t number, const std::optional<FaultInterval>& before,
                                        uint64_t seed) const;
};

}  // namespace railyard
