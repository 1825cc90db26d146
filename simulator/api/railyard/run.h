// SPDX-License-Identifier: GPL-2.0-only
// Runs a scenario.
#pragma once

#include "analysis/result/run_result.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/run/run_options.h"

namespace railyard {

struct Scenario;

using Result = RunResult;

// Simulates a scenario to its end and returns the measurements. Their status is COMPLETED,
// JOB_ABORTED, STALLED, TIME_ENDED if simulated time, 105 days, ended first, or INTERRUPTED if
// SIGINT, SIGTERM or SIGHUP arrived meanwhile.
//
// During a run the process's actions for these signals and SIGCHLD are Railyard's, and with
// `options.progress` or `options.saving` those for SIGALRM and SIGUSR1 and the timer ITIMER_REAL,
// too. Afterwards they are the caller's again, except that SIGUSR1 is ignored where it would end
// the process.
//
// A process can run one simulation at a time, because ns-3's simulator is global. Calls may come
// from any thread but must follow one another: a call that begins before the previous one has
// returned throws EnvironmentError. Concurrent runs need a process each. If the scenario has faults
// or several jobs, the run forks paired processes, so no other thread of the caller should hold a
// lock meanwhile that those would need; with `options.baseline` = false nothing is forked.
//
// Throws EnvironmentError if a paired process cannot be started or dies, if the scenario is larger
// than a run can be, if `options.threads` is 0 or a capture names no link between servers, or if
// the program uses ns-3's simulator for something else. After a run that ended with an exception,
// the process can simulate no more.
Result Run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace railyard
