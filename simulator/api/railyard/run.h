// SPDX-License-Identifier: GPL-2.0-only
// Runs a scenario.
#pragma once

#include "analysis/result/run_result.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/run/run_options.h"

namespace railyard {

struct Scenario;

using Result = RunResult;

// Simulates a scenario to its end and returns what was measured: COMPLETED, JOB_ABORTED, STALLED,
// or INTERRUPTED where SIGINT, SIGTERM or SIGHUP came meanwhile.
//
// One simulator per process: ns-3's simulator is global, so calls follow one another, from any
// thread, and none begins before the one before it has returned; a call that does is refused with
// an EnvironmentError. Runs of several scenarios at a time need a process each. Where the scenario
// has faults or several jobs, the run forks paired processes, so no other thread of the caller
// should hold a lock meanwhile that those would need; `options.baseline` = false does without.
//
// Throws EnvironmentError where a paired process cannot be started or dies, where the scenario is
// larger than a run can be, or where the program has used ns-3's simulator for something else.
Result Run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace railyard
