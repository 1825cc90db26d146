// SPDX-License-Identifier: GPL-2.0-only
// Runs scenarios for their times only, each in a separate process, so that several run at once and
// the memory of each is free again when it ends. The processes are forked copies of this one, so
// they share its memory, and no files are written for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

enum class TimedEnd : uint8_t {
  kDone,
  kEnvironmentFailed,  // or the process of the run ended without a result
  kInputWrong,
  kJobAborted,
  kStalled,
};
struct TimedRun {
  TimedEnd end = TimedEnd::kDone;
  std::string error;    // empty if it ran; else the findings, or how the run failed
  int64_t time_ps = 0;  // from the first rank's start to the last one's end
  uint64_t packet_hops = 0;
  std::string replayed;  // "RING/SIMPLE": algorithm and protocol of the first collective
};

// Makes the scenario of a run, in that run's process. Returns nullptr with findings after an error.
using ScenarioMaker = std::function<std::shared_ptr<const Scenario>(Diagnostics& findings)>;

// Returns one outcome per scenario, in order, running as many processes at once as there are
// processors. `done` is called for each as it ends. Throws EnvironmentError if no process can be
// started.
std::vector<TimedRun> RunTimed(const std::vector<ScenarioMaker>& makers,
                               const std::function<void(size_t, const TimedRun&)>& done);

}  // namespace railyard
