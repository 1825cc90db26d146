// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/timed_run.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <unistd.h>
#include <utility>

#include "simulator/processes/child_process.h"
#include "simulator/processes/handover.h"
#include "simulator/run/run_scenario.h"

namespace railyard {
namespace {

TimedRun Failed(TimedEnd end, std::string why) {
  TimedRun run;
  run.end = end;
  run.error = std::move(why);
  return run;
}

TimedRun RunHere(const ScenarioMaker& maker) {
  Diagnostics findings;
  const auto scenario = maker(findings);
  if (!scenario) return Failed(TimedEnd::kInputWrong, findings.ToString());
  const RunResult result = RunScenario(*scenario, {.baseline = false});
  if (result.status != RunStatus::kCompleted) {
    return Failed(
        result.status == RunStatus::kJobAborted ? TimedEnd::kJobAborted : TimedEnd::kStalled,
        result.status_detail);
  }
  int64_t first_start_ps = INT64_MAX;
  int64_t last_end_ps = 0;
  for (const CollectiveResult& collective : result.collectives) {
    first_start_ps = std::min(first_start_ps, collective.first_start_ps);
    last_end_ps = std::max(last_end_ps, collective.last_end_ps);
  }
  TimedRun run;
  run.time_ps = last_end_ps - first_start_ps;
  run.packet_hops = result.packet_hops;
  run.replayed = result.collectives.front().replayed;
  return run;
}

void Put(const TimedRun& run, Handover& to) {
  to.Put(run.end);
  to.Put(run.time_ps);
  to.Put(run.packet_hops);
  to.Put(run.error);
  to.Put(run.replayed);
}

bool Take(Handover& from, TimedRun& run) {
  return from.Take(run.end) && from.Take(run.time_ps) && from.Take(run.packet_hops) &&
         from.Take(run.error) && from.Take(run.replayed);
}

// In the copy of this process.
[[noreturn]] void RunInChild(const ScenarioMaker& maker, Handover& outcome) {
  try {
    TimedRun run;
    try {
      run = RunHere(maker);
    } catch (const std::exception& error) {
      run = Failed(TimedEnd::kEnvironmentFailed, error.what());
    }
    Put(run, outcome);
  } catch (const std::exception&) {
    _exit(1);  // the outcome cannot be handed over
  }
  _exit(0);  // nothing of the parent's may be flushed or destroyed twice
}

struct Running {
  size_t index = 0;
  Handover outcome{};
  ChildProcess process{};
};

std::unique_ptr<Running> Start(const ScenarioMaker& maker, size_t index) {
  auto started = std::make_unique<Running>();
  started->index = index;
  if (started->process.Fork("a run")) RunInChild(maker, started->outcome);
  return started;
}

TimedRun OutcomeOf(Running& running, int status) {
  TimedRun run;
  if (status == 0 && Take(running.outcome, run)) return run;
  return Failed(TimedEnd::kEnvironmentFailed,
                status > 128 ? "the run was killed by " + SignalName(status - 128)
                             : "the run ended without a result");
}

}  // namespace

std::vector<TimedRun> RunTimed(const std::vector<ScenarioMaker>& makers,
                               const std::function<void(size_t, const TimedRun&)>& done) {
  std::vector<TimedRun> runs(makers.size());
  std::vector<std::unique_ptr<Running>> running;
  const size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  size_t next = 0;
  while (next < makers.size() || !running.empty()) {
    for (; next < makers.size() && running.size() < at_once; ++next) {
      running.push_back(Start(makers[next], next));
    }
    std::vector<ChildProcess*> processes;
    for (const auto& entry : running) processes.push_back(&entry->process);
    const auto ended = ChildProcess::WaitForAny(processes);
    // The signal may have ended that run, too.
    if (!ended || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
    Running& at = *running[ended->index];
    TimedRun& run = runs[at.index];
    run = OutcomeOf(at, ended->status);
    done(at.index, run);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended->index));
  }
  return runs;
}

}  // namespace railyard
