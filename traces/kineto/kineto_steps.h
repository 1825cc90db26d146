// SPDX-License-Identifier: GPL-2.0-only
// Finds the profiler's step in which a call was made.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/kineto/kineto_events.h"
#include "traces/kineto/kineto_time.h"

namespace railyard {

// Holds the steps of one profile, by the times at which they begin.
class KinetoSteps {
 public:
  // Takes events in any order. If a step has several, e.g. one by each thread, the first counts.
  explicit KinetoSteps(std::vector<KinetoStep> events);
  // Returns how many steps have begun by then. A step lasts until the next one.
  uint32_t BegunBy(const EventTime& time) const;
  uint32_t count() const { return static_cast<uint32_t>(begins_.size()); }

 private:
  std::vector<EventTime> begins_;  // in order
};

}  // namespace railyard
