// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/run_scenario.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <ns3/simulator.h>

#include "analysis/metrics/run_metrics.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/run/added_time.h"
#include "simulator/run/baseline.h"
#include "simulator/run/baseline_file.h"
#include "simulator/run/divided_run.h"
#include "simulator/run/paired_runs.h"
#include "simulator/run/recordings.h"
#include "simulator/run/run_monitor.h"
#include "simulator/run/simulation.h"
#include "simulator/scenario/check/run_size.h"
#include "simulator/units/time_end.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

// A simulation with what RunScenario() adds to it: the paired fault-free run, recordings, and the
// monitor.
class ScenarioRun {
 public:
  // `job`: the scenario's, or one of its parts alone.
  ScenarioRun(const Scenario& scenario, const Job& job, const RunOptions& options,
              ReplayScope scope, RunMonitor& monitor)
      : monitor_(monitor),
        baseline_file_(options.baseline_file),
        // Before any time is spent, if the file turns out to be something else.
        stored_baseline_(options.baseline && !scenario.faults.empty() ? ReadStoredBaseline(job)
                                                                      : std::nullopt),
        simulation_(scenario, job, options, BuildNetwork(scenario, FabricSimulatorImpl::Get()),
                    {.before_first_fault =
                         [this, pair = options.baseline] {
                           if (pair) ForkBaseline();
                         },
                     .replay_scope = scope}),
        recordings_(options, scenario, simulation_.job(), simulation_.engine(),
                    simulation_.network(), simulation_.replay()) {}
  ScenarioRun(const ScenarioRun&) = delete;
  ScenarioRun& operator=(const ScenarioRun&) = delete;

  // Simulates on several cores. Returns why that had to be given up; empty: `result` is the run's.
  std::string RunDivided(DividedRun& divided, RunResult& result) {
    simulation_.StartDivided();
    std::string why = divided.Run({.graph = simulation_.scenario().fabric,
                                   .engine = simulation_.engine(),
                                   .network = simulation_.network(),
                                   .replay = simulation_.replay()},
                                  monitor_);
    if (!why.empty()) return why;
    simulation_.AbsorbLooks();
    result = Record(false);
    result.cpu_seconds += divided.cpu_seconds();
    result.peak_rss_bytes += divided.peak_rss_bytes();
    PairWithBaseline(result);
    return {};
  }

  // In a child: hands the outcome over.
  [[noreturn]] void RunPaired(Baseline& baseline, bool with_faults) {
    if (!with_faults) simulation_.faults().Disarm();
    try {
      RunToEnd();
      FinishBaseline(baseline);
    } catch (const std::bad_alloc&) {
      baseline.LeaveWithoutMemory();
    }
  }

  RunResult Run() {
    try {
      RunToEnd();
      if (baseline_ && baseline_->is_child()) FinishBaseline(*baseline_);
    } catch (const std::bad_alloc&) {
      if (baseline_ && baseline_->is_child()) baseline_->LeaveWithoutMemory();
      throw;
    }

    RunResult result = Record(false);
    PairWithBaseline(result);
    recordings_.Finish(std::max(simulation_.engine().NowPs(), simulation_.replay().end_ps()),
                       result);
    return result;
  }

  // Returns the table by which a child that was forked during the run hands over its outcome, else
  // null.
  std::unique_ptr<Baseline> TakeBaselineOfChild() {
    return baseline_ && baseline_->is_child() ? std::move(baseline_) : nullptr;
  }

 private:
  RunResult Record(bool goes_on) const {
    return simulation_.Record(monitor_.interruption(), goes_on);
  }

  void RunToEnd() {
    simulation_.Start();
    monitor_.Run({.engine = simulation_.engine(),
                  .network = simulation_.network(),
                  .replay = simulation_.replay(),
                  .save_so_far = [this](const SavingOptions& saving) {
                    RunResult result = Record(true);
                    recordings_.LendSoFar(result);
                    saving.save(result);
                    recordings_.ReturnSoFar(result);
                  }});
  }

  std::optional<Baseline::Outcome> ReadStoredBaseline(const Job& job) const {
    if (baseline_file_.path.empty()) return std::nullopt;
    return ReadBaselineFile(baseline_file_, job.collectives.size(), job.parts.size());
  }

  // Unless another run with the same fault-free one has left its outcome, possibly since this one
  // began.
  void ForkBaseline() {
    const Job& job = simulation_.job();
    if (!stored_baseline_) stored_baseline_ = ReadStoredBaseline(job);
    if (stored_baseline_) return;
    baseline_ =
        std::make_unique<Baseline>("the fault-free run", job.collectives.size(), job.parts.size());
    if (!ForkPaired(*baseline_, monitor_)) return;
    recordings_.LeaveToParent();
    simulation_.faults().Disarm();
  }

  std::vector<CollectiveOutcome> Outcomes() const {
    const ReplayEngine& replay = simulation_.replay();
    std::vector<CollectiveOutcome> outcomes(replay.ledger().times().size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const CollectiveTimes& times = replay.ledger().times()[i];
      if (times.last_end_ps == kNeverPs) continue;
      outcomes[i] = {.duration_ps = times.last_end_ps - times.first_start_ps,
                     .wait_ps = times.last_start_ps - times.first_start_ps,
                     .spent_ps = replay.ledger().paths().empty()
                                     ? PathTimes{}
                                     : replay.ledger().paths()[i].spent_ps};
    }
    return outcomes;
  }

  std::vector<int64_t> JobEndsPs() const {
    const ReplayEngine& replay = simulation_.replay();
    std::vector<int64_t> ends_ps(simulation_.job().parts.size());
    for (PartIndex part{}; part < ends_ps.size(); ++part) {
      const CallLedger::PartProgress& progress = replay.ledger().parts()[part];
      if (progress.calls_left > 0 || !progress.abort_reason.empty()) continue;
      const int64_t end_ps = replay.EndOfPartPs(part);
      if (end_ps <= kTimeEndPs) ends_ps[part] = end_ps;
    }
    return ends_ps;
  }

  [[noreturn]] void FinishBaseline(Baseline& baseline) const {
    const ReplayEngine& replay = simulation_.replay();
    baseline.Finish({.collectives = Outcomes(),
                     .job_end_ps = JobEndsPs(),
                     .simulated_time_ps = std::min(replay.end_ps(), kTimeEndPs),
                     .cpu_seconds = CpuSeconds()});
  }

  void PairWithBaseline(RunResult& result) const {
    if (simulation_.scenario().faults.empty() || result.status == RunStatus::kInterrupted) return;
    Baseline::Outcome outcome;
    if (baseline_) {
      auto ended = monitor_.WaitFor(*baseline_);
      if (!ended) return;
      outcome = std::move(*ended);
      if (!baseline_file_.path.empty()) WriteBaselineFile(baseline_file_, outcome);
    } else if (simulation_.has_fault_begun() && stored_baseline_) {
      outcome = *stored_baseline_;
      result.notes.push_back(fmt::format(
          "the fault-free run was not simulated: its times are from {}", baseline_file_.path));
    } else if (!simulation_.has_fault_begun()) {
      // This run is the fault-free one.
      result.notes.push_back(
          fmt::format("no fault had begun when the job ended after {}: nothing was disturbed",
                      FormatDuration(result.simulated_time_ps)));
      outcome = {.collectives = Outcomes(),
                 .job_end_ps = JobEndsPs(),
                 .simulated_time_ps = result.simulated_time_ps};
    } else {
      return;
    }
    result.has_baseline = true;
    result.baseline_cpu_seconds = outcome.cpu_seconds;
    for (size_t i = 0; i < result.jobs.size(); ++i) {
      result.jobs[i].baseline_end_ps = outcome.job_end_ps[i];
    }
    if (std::ranges::find(outcome.job_end_ps, 0) == outcome.job_end_ps.end()) {
      result.baseline_simulated_time_ps = outcome.simulated_time_ps;
    } else {
      result.notes.emplace_back(
          "the fault-free run did not complete: jobs that do not end in it are not compared with "
          "it");
    }
    for (size_t i = 0; i < result.collectives.size(); ++i) {
      const CollectiveOutcome& baseline = outcome.collectives[i];
      CollectiveResult& collective = result.collectives[i];
      collective.baseline_duration_ps = baseline.duration_ps;
      collective.baseline_wait_ps = baseline.wait_ps;
      if (!collective.completed || baseline.duration_ps == 0) continue;
      collective.added =
          SplitAddedTime(simulation_.replay().ledger().paths()[i].spent_ps, baseline.spent_ps,
                         collective.duration_ps() - baseline.duration_ps);
    }
  }

  RunMonitor& monitor_;
  const BaselineFile baseline_file_;
  std::optional<Baseline::Outcome> stored_baseline_;
  std::unique_ptr<Baseline> baseline_;
  Simulation simulation_;
  Recordings recordings_;
};

// Ends the engine, however a run ends. Must be destroyed before the simulation, because the events
// that are left over refer to it.
class EngineEnd {
 public:
  EngineEnd() = default;
  EngineEnd(const EngineEnd&) = delete;
  EngineEnd& operator=(const EngineEnd&) = delete;
  ~EngineEnd() { ns3::Simulator::Destroy(); }
};

// Calls run(simulation). If parts of the network that were simulated separately turn out not to be
// independent, starts over and simulates all of it together. Returns whether it did.
template <typename Run>
bool Simulate(const Scenario& scenario, const Job& job, const RunOptions& options,
              RunMonitor& monitor, Run run) {
  std::unique_ptr<Baseline> of_child;
  {
    ScenarioRun simulation(scenario, job, options, ReplayScope::kPartitions, monitor);
    try {
      const EngineEnd end;
      run(simulation);
      return false;
    } catch (const SharedBuffers::NotIndependent&) {
      // Simulated again below.
    }
    of_child = simulation.TakeBaselineOfChild();
  }
  const ReplayScope scope = ReplayScope::kNetwork;
  if (of_child) ScenarioRun(scenario, job, options, scope, monitor).RunPaired(*of_child, false);
  ScenarioRun simulation(scenario, job, options, scope, monitor);
  const EngineEnd end;
  run(simulation);
  return true;
}

// Simulates on several cores, if the options say so and that is possible. Returns why it is not;
// empty: `result` is the run's, or one core was asked for.
std::string SimulateDivided(const Scenario& scenario, RunOptions options, RunMonitor& monitor,
                            std::optional<RunResult>& result) {
  const uint32_t asked = options.threads;
  if (asked == 1) return {};
  const uint32_t threads = std::min(asked, scenario.fabric.server_count());
  if (threads == 1) return "the fabric has one server";
  if (std::string why = WhyNotDivided(scenario, options); !why.empty()) return why;
  options.series = false;
  ScenarioRun simulation(scenario, scenario.job, options, ReplayScope::kNothing, monitor);
  const EngineEnd end;
  DividedRun divided(scenario.fabric, threads);
  RunResult of_all;
  if (std::string why = simulation.RunDivided(divided, of_all); !why.empty()) return why;
  of_all.threads = threads;
  of_all.division = divided.division();
  if (threads < asked) {
    of_all.threads_why = fmt::format("the fabric has only {} servers", threads);
  }
  of_all.notes.emplace_back("Time series are recorded on one thread only: there are none.");
  result = std::move(of_all);
  return {};
}

// A run that has come to its end, but not all that it was to be paired with.
void MarkCutShort(const RunMonitor& monitor, RunResult& result) {
  if (!monitor.has_given_up() || result.status == RunStatus::kInterrupted) return;
  std::string detail = fmt::format(
      "{}, before the runs that this one is paired with had ended; this one had ended as {}",
      monitor.interruption(), RunStatusName(result.status));
  if (!result.status_detail.empty()) detail += ":\n" + result.status_detail;
  result.status = RunStatus::kInterrupted;
  result.status_detail = std::move(detail);
}

}  // namespace

RunResult RunScenario(const Scenario& scenario, const RunOptions& options) {
  if (const std::string why = WhyTooLarge(scenario.exchange_connections); !why.empty()) {
    throw EnvironmentError(fmt::format("{}: {}", scenario.path, why));
  }
  RunMonitor monitor(options.progress, options.saving);
  const PairedSimulation simulate = [&](const Job& job, bool with_faults, Baseline& baseline) {
    Simulate(scenario, job, {.baseline = false, .replay_cache = options.replay_cache}, monitor,
             [&](ScenarioRun& simulation) { simulation.RunPaired(baseline, with_faults); });
  };
  AloneRuns alone_runs(scenario.job, options, monitor, simulate);
  ReliableRun reliable_run(scenario.job, options, monitor, simulate);
  std::optional<RunResult> divided;
  const std::string why_one_thread = SimulateDivided(scenario, options, monitor, divided);
  const bool is_divided = divided.has_value();
  RunResult result;
  if (is_divided) {
    result = *std::move(divided);
  } else if (Simulate(scenario, scenario.job, options, monitor,
                      [&](ScenarioRun& simulation) { result = simulation.Run(); })) {
    result.notes.push_back(
        "this run was simulated twice: rails that had been simulated separately share a switch's "
        "buffer or a NIC with other traffic");
  }
  if (!is_divided) result.threads_why = why_one_thread;
  alone_runs.Pair(scenario.job, result);
  reliable_run.Pair(result);
  MarkCutShort(monitor, result);
  return result;
}

}  // namespace railyard
