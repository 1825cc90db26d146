// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "analysis/result/run_result.h"
#include "simulator/run/run_options.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// Simulates a scenario to its end; the status is COMPLETED, JOB_ABORTED, STALLED or TIME_ENDED. If
// a signal interrupts it, the status is INTERRUPTED, and the result has the figures so far and, if
// the paired run was cut short, no stretch. Calls must not overlap, and InitVirtualTime() must have
// been called. Throws EnvironmentError if the baseline cannot be forked or dies; the process cannot
// simulate any more then.
RunResult RunScenario(const Scenario& scenario, const RunOptions& options);

}  // namespace railyard
