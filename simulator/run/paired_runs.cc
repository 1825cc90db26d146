// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/paired_runs.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "workloads/job/job_parts.h"

namespace railyard {

bool ForkPaired(Baseline& baseline, RunMonitor& monitor) {
  if (baseline.Fork()) {
    monitor.BecomeChild(baseline);
    return true;
  }
  monitor.AddPaired(baseline);
  return false;
}

AloneRuns::AloneRuns(const Job& job, const RunOptions& options, RunMonitor& monitor,
                     const PairedSimulation& simulate)
    : monitor_(monitor) {
  if (!options.baseline || job.parts.size() < 2) return;
  const size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  for (PartIndex part{}; part < job.parts.size(); ++part) {
    if (part >= at_once && !WaitForNext()) return;
    runs_.push_back(
        std::make_unique<Baseline>(fmt::format("the run of job {} alone", job.parts[part].name),
                                   job.collectives.size(), job.parts.size()));
    if (ForkPaired(*runs_.back(), monitor_)) simulate(AloneOf(job, part), false, *runs_.back());
  }
}

void AloneRuns::Pair(const Job& job, RunResult& result) {
  while (outcomes_.size() < runs_.size()) {
    if (!WaitForNext()) return;
  }
  for (PartIndex part{}; part < outcomes_.size(); ++part) {
    result.jobs[part].alone_end_ps = outcomes_[part].job_end_ps[part];
    result.baseline_cpu_seconds += outcomes_[part].cpu_seconds;
  }
  for (size_t i = 0; i < result.collectives.size() && !outcomes_.empty(); ++i) {
    const PartIndex part = job.PartOf(job.collectives[i].communicator);
    result.collectives[i].alone_duration_ps = outcomes_[part].collectives[i].duration_ps;
  }
}

bool AloneRuns::WaitForNext() {
  auto outcome = monitor_.WaitFor(*runs_[outcomes_.size()]);
  if (!outcome) return false;
  outcomes_.push_back(std::move(*outcome));
  return true;
}

ReliableRun::ReliableRun(const Job& job, const RunOptions& options, RunMonitor& monitor,
                         const PairedSimulation& simulate)
    : monitor_(monitor) {
  if (!options.baseline || !ToleratesLoss(job)) return;
  const Job reliable = ReliableOf(job);
  run_ = std::make_unique<Baseline>("the run without tolerated loss", reliable.collectives.size(),
                                    reliable.parts.size());
  if (ForkPaired(*run_, monitor_)) simulate(reliable, true, *run_);
}

void ReliableRun::Pair(RunResult& result) {
  if (!run_) return;
  const auto outcome = monitor_.WaitFor(*run_);
  if (!outcome) return;
  result.baseline_cpu_seconds += outcome->cpu_seconds;
  const bool is_whole = std::all_of(outcome->job_end_ps.begin(), outcome->job_end_ps.end(),
                                    [](int64_t end_ps) { return end_ps != 0; });
  if (is_whole && result.status == RunStatus::kCompleted) {
    result.reliable_simulated_time_ps = outcome->simulated_time_ps;
  }
}

}  // namespace railyard
