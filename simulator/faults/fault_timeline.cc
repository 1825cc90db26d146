// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/fault_timeline.h"

#include <algorithm>

#include "simulator/faults/keyed_draw.h"

namespace railyard {
namespace {

constexpr uint64_t kFlapJitterStream = 1;
constexpr uint64_t kUpStream = 2;
constexpr uint64_t kRepairStream = 3;

int64_t Later(int64_t time_ps, int64_t by_ps) {
  return by_ps >= kNeverPs - time_ps ? kNeverPs : time_ps + by_ps;
}

std::optional<FaultInterval> DrawInterval(const FaultTimeline& timeline, uint64_t number,
                                          const std::optional<FaultInterval>& before,
                                          uint64_t seed) {
  const int64_t since_ps = number == 0 ? timeline.at_ps
                           : before->until_ps == kNeverPs
                               ? kNeverPs
                               : Later(before->until_ps, timeline.training_ps);
  const KeyedDraw up(seed, kUpStream, number);
  const KeyedDraw repair(seed, kRepairStream, number);
  // At least a picosecond, so that intervals are distinct.
  const int64_t from_ps =
      Later(since_ps, std::max<int64_t>(1, up.ExponentialPs(timeline.mean_between_ps)));
  if (from_ps >= timeline.until_ps) return std::nullopt;
  return FaultInterval{
      from_ps, Later(from_ps, std::max<int64_t>(1, repair.ExponentialPs(timeline.mean_repair_ps)))};
}

}  // namespace

std::optional<FaultInterval> FaultTimeline::Interval(uint64_t number,
                                                     const std::optional<FaultInterval>& before,
                                                     uint64_t seed) const {
  if (!recorded.empty()) {
    if (number >= recorded.size()) return std::nullopt;
    return recorded[number];
  }
  if (mean_between_ps > 0) return DrawInterval(*this, number, before, seed);
  if (number >= count) return std::nullopt;
  if (period_ps == 0) return FaultInterval{at_ps, until_ps};
  // An interval beyond the last event does not happen.
  const int64_t last_ps = kNeverPs - until_ps - jitter_ps;
  if (number > static_cast<uint64_t>(last_ps / period_ps)) return std::nullopt;
  const int64_t from_ps = at_ps + static_cast<int64_t>(number) * period_ps +
                          KeyedDraw(seed, kFlapJitterStream, number).BelowPs(jitter_ps);
  return FaultInterval{from_ps, from_ps + (until_ps - at_ps)};
}

}  // namespace railyard
