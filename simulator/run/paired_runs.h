// SPDX-License-Identifier: GPL-2.0-only
// Runs in child processes what the results of a run are compared with.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/run/baseline.h"
#include "simulator/run/run_monitor.h"
#include "simulator/run/run_options.h"
#include "workloads/job/job.h"

namespace railyard {

// Forks a paired run, whose progress the parent's monitor shows from then on. Returns true in the
// child, whose monitor reports it.
bool ForkPaired(Baseline& baseline, RunMonitor& monitor);

// Is called in a forked child. Simulates the job, with or without the faults, hands the outcome
// over by `baseline` and ends the process.
using PairedSimulation = std::function<void(const Job& job, bool with_faults, Baseline& baseline)>;

// Runs each of several jobs alone, in separate processes, as many at a time as there are
// processors.
class AloneRuns {
 public:
  // Starts the runs if the options ask for a baseline. `monitor` must outlive this.
  AloneRuns(const Job& job, const RunOptions& options, RunMonitor& monitor,
            const PairedSimulation& simulate);

  // Waits for the runs that have not ended, and adds all outcomes to `result`.
  void Pair(const Job& job, RunResult& result);

 private:
  // Returns false if the run is to end.
  bool WaitForNext();

  RunMonitor& monitor_;
  std::vector<std::unique_ptr<Baseline>> runs_;  // by part
  std::vector<Baseline::Outcome> outcomes_;      // of the first of them
};

// Simulates the job once more with every lost byte retransmitted, if receivers tolerate losses.
class ReliableRun {
 public:
  // Starts the run if the options ask for a baseline. `monitor` must outlive this.
  ReliableRun(const Job& job, const RunOptions& options, RunMonitor& monitor,
              const PairedSimulation& simulate);

  // Waits for the run and adds its outcome to `result`. A run that is cut short has no time to
  // compare.
  void Pair(RunResult& result);

 private:
  RunMonitor& monitor_;
  std::unique_ptr<Baseline> run_;
};

}  // namespace railyard
