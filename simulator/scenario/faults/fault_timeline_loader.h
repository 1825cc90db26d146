// SPDX-License-Identifier: GPL-2.0-only
// Loads the times of a fault: its fields `at` and `until`, repetitions, random times and logs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/faults/fault_timeline.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// Times may be up to this one, which is later than the end of any job, but small enough that sums
// do not overflow.
inline constexpr int64_t kFaultTimePsMax = 90LL * 24 * 3600 * kPsPerSecond;

// Loads everything except the anchor and the intervals of a log. Returns false after a finding.
bool LoadTimeline(const ProtoCursor& fault, FaultTimeline& timeline, Diagnostics& diagnostics);

// Reads a log of outages: lines "time,target,state" with times as in a scenario, ascending, and
// states "down" and "up"; the first line may name the columns. Times count from zero. Returns the
// intervals of each target; empty after a finding.
std::map<std::string, std::vector<FaultInterval>> LoadFaultLog(const ProtoCursor& fault,
                                                               int64_t training_ps,
                                                               Diagnostics& diagnostics);

}  // namespace railyard
