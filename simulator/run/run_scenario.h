// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>

#include "analysis/result/run_result.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/run/run_monitor.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

struct RunOptions {
  // Pair the run with a fault-free one, for stretch. It is a child process, forked at the instant
  // of the first fault: up to there the two are the same run. Pair each of several jobs with a run
  // of it alone, for interference: child processes too, forked before the run.
  bool baseline = true;
  ReplayCacheMode replay_cache = ReplayCacheMode::kOn;
  bool partition_episodes = true;  // ReplayRules
  // Of a plan's job: the result says beside it what the time of its rank went to.
  std::optional<EstimateResult> estimate{};
  ProgressOptions progress{};
};

// Simulates a scenario to its end: COMPLETED, JOB_ABORTED or STALLED; or, where a signal interrupts
// it, until then: INTERRUPTED, with what there is by then and, if the paired run was cut short,
// without stretch. One call per process, after
// InitVirtualTime(). Throws EnvironmentError if the baseline cannot be forked or dies.
RunResult RunScenario(const Scenario& scenario, const RunOptions& options);

}  // namespace railyard
