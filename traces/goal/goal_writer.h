// SPDX-License-Identifier: GPL-2.0-only
// Writes traces in GOAL, for LogGOPSim.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/goal/goal_schedule.h"
#include "traces/trace/trace.h"

namespace railyard {

// Returns the schedule. Collectives become their messages (TraceGraphOptions), gaps become calc, in
// nanoseconds. Returns nullopt if the schedule would be too long, which is an error at `file`.
std::optional<GoalSchedule> GoalOfTrace(const Trace& trace, const std::string& file,
                                        Diagnostics& diagnostics);

}  // namespace railyard
