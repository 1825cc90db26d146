// SPDX-License-Identifier: GPL-2.0-only
// Reads schedules in GOAL, text or binary, one file per job. Times are taken as nanoseconds, as in
// LogGOPSim; the CPUs and NICs of operations are ignored.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kGoalReader;

}  // namespace railyard
