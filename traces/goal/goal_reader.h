// SPDX-License-Identifier: GPL-2.0-only
// Reads schedules in GOAL, text or binary, one file a job. Times are taken as nanoseconds, as
// LogGOPSim does; CPUs and NICs that operations name are not.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

TraceReader GoalReader();

}  // namespace railyard
