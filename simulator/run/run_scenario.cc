// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/run_scenario.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <memory>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "analysis/metrics/run_metrics.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/faults/circuit_scheduler.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/run/added_time.h"
#include "simulator/run/baseline.h"
#include "simulator/run/job_aborter.h"
#include "simulator/run/job_restarter.h"
#include "simulator/run/loss_recorder.h"
#include "simulator/run/recordings.h"
#include "simulator/run/result_recorder.h"
#include "simulator/run/run_monitor.h"
#include "simulator/run/time_breakdown.h"
#include "simulator/run/watchdog.h"
#include "simulator/scenario/check/run_size.h"
#include "simulator/traffic/background_load.h"
#include "simulator/units/time_end.h"
#include "simulator/units/units.h"
#include "topologies/routing/routing.h"
#include "workloads/job/job_parts.h"

namespace railyard {
namespace {

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

uint64_t PeakRssBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void SetAttributes(const std::vector<ModelAttribute>& attributes, ns3::Object& model) {
  for (const ModelAttribute& attribute : attributes) {
    if (attribute.type == model.GetInstanceTypeId().GetName()) {
      model.SetAttribute(attribute.name, ns3::StringValue(attribute.value));
    }
  }
}

// The fabric, its models with the scenario's attributes.
ns3::Ptr<FabricNetwork> BuildNetwork(const Scenario& scenario, FabricSimulatorImpl& engine) {
  const auto network = ns3::CreateObject<FabricNetwork>();
  network->SetAttribute("Seed", ns3::UintegerValue(scenario.seed));
  SetAttributes(scenario.models, *network);
  network->Build(scenario.fabric, engine);
  for (DeviceId id{0}; id < scenario.fabric.device_count(); ++id) {
    if (const auto model = network->GetSwitch(id)) SetAttributes(scenario.models, *model);
  }
  network->Configure();
  return network;
}

bool MayRestart(const Scenario& scenario) {
  return std::ranges::any_of(scenario.restarts, &RestartSettings::restarts);
}

ReplayRules RulesOf(const Scenario& scenario, const RunOptions& options) {
  ReplayRules rules{
      .nccl = scenario.nccl,
      .nic_variants = scenario.nic_variants,
      .net_ib = scenario.net_ib,
      .net_socket = scenario.net_socket,
      .transport = scenario.transport,
      .gpu = scenario.gpu,
      .cache = options.captures.empty() ? options.replay_cache : ReplayCacheMode::kOff,
      .partition_episodes = options.partition_episodes,
      .seed = scenario.seed,
      .keep_paths = !scenario.faults.empty() || !options.perfetto_file.empty()};
  for (const FaultSpec& fault : scenario.faults) {
    rules.has_load |= fault.kind == FaultKind::kBackgroundLoad;
    rules.faulty_links.insert(rules.faulty_links.end(), fault.links.begin(), fault.links.end());
    rules.faulty_gpus.insert(rules.faulty_gpus.end(), fault.gpus.begin(), fault.gpus.end());
  }
  return rules;
}

// Everything of one simulation, in the order it is built.
class Simulation {
 public:
  // `job`: the scenario's, or one of its parts alone.
  Simulation(const Scenario& scenario, const Job& job, const RunOptions& options,
             RunMonitor& monitor)
      : scenario_(scenario),
        monitor_(monitor),
        moving_(MayRestart(scenario) ? std::make_unique<Job>(job) : nullptr),
        job_(moving_ ? *moving_ : job),
        estimate_(options.estimate),
        engine_(FabricSimulatorImpl::Get()),
        network_(BuildNetwork(scenario, engine_)),
        routing_(scenario.fabric, scenario.seed),
        losses_(scenario.faults.size()) {
    ReplayRules rules = RulesOf(scenario, options);
    // A part alone has communicators of its own.
    if (&job == &scenario.job) rules.planners = scenario.planners;
    replay_ = std::make_unique<ReplayEngine>(scenario.fabric, *network_, routing_, job_, rules,
                                             scenario.nic, losses_);
    if (options.estimate) replay_->KeepCallsOf(options.estimate->rank);
    network_->SetRouting(routing_);
    faults_ = std::make_unique<FaultInjector>(
        scenario.fabric, scenario.faults, scenario.routing, *network_, routing_,
        FaultInjector::Hooks{
            .before_first_fault =
                [this, pair = options.baseline] {
                  if (pair) ForkBaseline();
                },
            .on_routes_changed =
                [this] {
                  network_->OnRoutesChanged();
                  replay_->executor().ResolvePaths();
                },
            .set_gpu_speed = [this](GpuIndex gpu,
                                    double speed) { replay_->SetGpuSpeed(gpu, speed); },
            .set_load = [this](uint32_t fault, bool runs) { load_->Set(fault, runs); }});
    load_ = std::make_unique<BackgroundLoad>(scenario.fabric, scenario.faults,
                                             replay_->executor().network_stack().Plain(), engine_,
                                             [this] { return replay_->IsAnyPartUp(); });
    circuits_ = std::make_unique<CircuitScheduler>(scenario.fabric, *network_, routing_, [this] {
      network_->OnRoutesChanged();
      replay_->executor().ResolvePaths();
    });
    losses_.Observe(*faults_, *replay_, engine_);
    for (const FaultSpec& fault : scenario.faults) {
      for (const uint32_t collective : fault.timeline.anchor.collectives) {
        replay_->WatchProgress(collective);
      }
    }
    restarters_.resize(job.parts.size());
    for (uint32_t part = 0; part < job.parts.size(); ++part) {
      const RestartSettings& restart = scenario.restarts[part];
      aborters_.emplace_back(restart.restarts ? restart.detection : scenario.watchdog.detection,
                             *replay_, engine_, part);
      if (!restart.restarts) continue;
      restarters_[part] =
          std::make_unique<JobRestarter>(restart, part,
                                         JobRestarter::Run{.fabric = scenario.fabric,
                                                           .job = *moving_,
                                                           .replay = *replay_,
                                                           .engine = engine_,
                                                           .faults = *faults_,
                                                           .load = *load_});
    }
    losses_.SetOnRankError([this](uint32_t rank, const std::string& why) {
      const uint32_t part = replay_->PartOfRank(rank);
      JobRestarter* const restarter = restarters_[part].get();
      if (!aborters_[part].has_error() && restarter != nullptr && restarter->OnJobFailed(why))
        return;
      aborters_[part].OnRankError(rank, why);
    });
    recordings_ =
        std::make_unique<Recordings>(options, scenario, job_, engine_, *network_, *replay_);
    if (scenario.watchdog.no_progress_ps > 0) {
      watchdog_ =
          std::make_unique<Watchdog>(scenario.watchdog, engine_, *network_, *replay_,
                                     [this](const std::string& why) { return GoesOn(why); });
    }
  }

  // In a child: hands the outcome over.
  [[noreturn]] void RunPaired(Baseline& baseline, bool with_faults) {
    if (!with_faults) faults_->Disarm();
    RunToEnd();
    FinishBaseline(baseline);
  }

  RunResult Run() {
    wall_start_ = std::chrono::steady_clock::now();
    RunToEnd();
    if (baseline_ && baseline_->is_child()) FinishBaseline(*baseline_);

    RunResult result = Record(false);
    PairWithBaseline(result);
    recordings_->Finish(std::max(engine_.NowPs(), replay_->end_ps()), result);
    return result;
  }

  // Returns the table by which a child that was forked during the run hands over its outcome, else
  // null.
  std::unique_ptr<Baseline> TakeBaselineOfChild() {
    return baseline_ && baseline_->is_child() ? std::move(baseline_) : nullptr;
  }

 private:
  // Returns what this run alone has to say, now that it has ended or while it goes on.
  RunResult Record(bool goes_on) const {
    RunResult result = RecordResult({.scenario = scenario_,
                                     .job = job_,
                                     .network = *network_,
                                     .replay = *replay_,
                                     .losses = losses_,
                                     .faults = *faults_,
                                     .interruption = monitor_.interruption(),
                                     .goes_on = goes_on});
    for (uint32_t part = 0; part < result.jobs.size(); ++part) {
      JobResult& job = result.jobs[part];
      job.abort = aborters_[part].result();
      if (restarters_[part]) job.restart = restarters_[part]->result();
      job.restart.save_ps = SavePs(scenario_.restarts[part]);
    }
    result.estimate = estimate_;
    if (estimate_ && result.jobs.front().restart.restarts == 0) {
      result.estimate->simulated = BreakdownOf(job_, *replay_, estimate_->rank);
    }
    result.events = engine_.EventCount();
    if (!replay_->is_complete()) {
      result.simulated_time_ps = result.status == RunStatus::kTimeEnded
                                     ? kTimeEndPs
                                     : std::max(engine_.NowPs(), replay_->end_ps());
    }
    if (watchdog_ && watchdog_->has_barked() && result.status == RunStatus::kStalled) {
      result.status_detail = watchdog_->why() + "\n" + result.status_detail;
    }
    result.cpu_seconds = CpuSeconds();
    result.wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start_).count();
    result.peak_rss_bytes = PeakRssBytes();
    return result;
  }

  void RunToEnd() {
    engine_.SetTimeEnd(kTimeEndPs);
    replay_->Start();
    if (watchdog_) watchdog_->Start();
    monitor_.Run(
        {.engine = engine_, .network = *network_, .replay = *replay_, .results_so_far = [this] {
           RunResult result = Record(true);
           recordings_->AddSoFar(result);
           return result;
         }});
  }

  // Handles a long time without progress. Ranks that hang since an error and jobs that wait for
  // their restart are not a stall, because their end is known. Jobs that do not progress restart if
  // they can.
  bool GoesOn(const std::string& why) {
    bool goes_on = std::ranges::any_of(aborters_, &JobAborter::is_waiting);
    for (uint32_t part = 0; part < restarters_.size(); ++part) {
      JobRestarter* const restarter = restarters_[part].get();
      if (restarter == nullptr) continue;
      goes_on |= restarter->is_down() || (replay_->IsHeldUp(part) && !aborters_[part].has_error() &&
                                          restarter->OnJobFailed(why));
    }
    return goes_on;
  }

  // Returns the time that a run without failures spends on checkpoints.
  static int64_t SavePs(const RestartSettings& settings) {
    return static_cast<int64_t>(settings.checkpoint_count) * settings.save_ps;
  }

  void ForkBaseline() {
    baseline_ = std::make_unique<Baseline>("the fault-free run", job_.collectives.size(),
                                           job_.parts.size());
    if (baseline_->Fork()) {
      monitor_.BecomeChild(*baseline_);
      recordings_->LeaveToParent();
      faults_->Disarm();
    } else {
      monitor_.AddPaired(*baseline_);
    }
  }

  std::vector<CollectiveOutcome> Outcomes() const {
    std::vector<CollectiveOutcome> outcomes(replay_->times().size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const CollectiveTimes& times = replay_->times()[i];
      if (times.last_end_ps == kNeverPs) continue;
      outcomes[i] = {
          .duration_ps = times.last_end_ps - times.first_start_ps,
          .wait_ps = times.last_start_ps - times.first_start_ps,
          .spent_ps = replay_->paths().empty() ? PathTimes{} : replay_->paths()[i].spent_ps};
    }
    return outcomes;
  }

  std::vector<int64_t> JobEndsPs() const {
    std::vector<int64_t> ends_ps(job_.parts.size());
    for (uint32_t part = 0; part < ends_ps.size(); ++part) {
      const ReplayEngine::PartProgress& progress = replay_->parts()[part];
      if (progress.calls_left > 0 || !progress.abort_reason.empty()) continue;
      const int64_t end_ps = replay_->EndOfPartPs(part);
      if (end_ps <= kTimeEndPs) ends_ps[part] = end_ps;
    }
    return ends_ps;
  }

  [[noreturn]] void FinishBaseline(Baseline& baseline) const {
    baseline.Finish({.collectives = Outcomes(),
                     .job_end_ps = JobEndsPs(),
                     .simulated_time_ps = std::min(replay_->end_ps(), kTimeEndPs),
                     .cpu_seconds = CpuSeconds()});
  }

  void PairWithBaseline(RunResult& result) const {
    if (scenario_.faults.empty() || result.status == RunStatus::kInterrupted) return;
    Baseline::Outcome outcome;
    if (baseline_) {
      auto ended = monitor_.WaitFor(*baseline_);
      if (!ended) return;
      outcome = std::move(*ended);
    } else if (!faults_->has_begun()) {
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
    result.baseline_simulated_time_ps = outcome.simulated_time_ps;
    for (size_t i = 0; i < result.collectives.size(); ++i) {
      const CollectiveOutcome& baseline = outcome.collectives[i];
      CollectiveResult& collective = result.collectives[i];
      collective.baseline_duration_ps = baseline.duration_ps;
      collective.baseline_wait_ps = baseline.wait_ps;
      if (!collective.completed || baseline.duration_ps == 0) continue;
      collective.added = SplitAddedTime(replay_->paths()[i].spent_ps, baseline.spent_ps,
                                        collective.duration_ps() - baseline.duration_ps);
    }
  }

  const Scenario& scenario_;
  RunMonitor& monitor_;
  const std::unique_ptr<Job> moving_;  // its ranks may be swapped
  const Job& job_;
  const std::optional<EstimateResult> estimate_;
  std::chrono::steady_clock::time_point wall_start_;
  FabricSimulatorImpl& engine_;
  ns3::Ptr<FabricNetwork> network_;
  EcmpRouting routing_;
  LossRecorder losses_;
  std::unique_ptr<ReplayEngine> replay_;
  std::unique_ptr<FaultInjector> faults_;
  std::unique_ptr<BackgroundLoad> load_;
  std::unique_ptr<CircuitScheduler> circuits_;
  std::unique_ptr<Baseline> baseline_;
  std::deque<JobAborter> aborters_;                        // by part of the job
  std::vector<std::unique_ptr<JobRestarter>> restarters_;  // by part; null: it does not
  std::unique_ptr<Recordings> recordings_;
  std::unique_ptr<Watchdog> watchdog_;
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
bool Simulate(const Scenario& scenario, const Job& job, RunOptions options, RunMonitor& monitor,
              Run run) {
  std::unique_ptr<Baseline> of_child;
  {
    Simulation simulation(scenario, job, options, monitor);
    try {
      const EngineEnd end;
      run(simulation);
      return false;
    } catch (const FabricNetwork::NotApart&) {
      // Simulated again below.
    }
    of_child = simulation.TakeBaselineOfChild();
  }
  options.partition_episodes = false;
  if (of_child) Simulation(scenario, job, options, monitor).RunPaired(*of_child, false);
  Simulation simulation(scenario, job, options, monitor);
  const EngineEnd end;
  run(simulation);
  return true;
}

// Runs each of several jobs alone, in separate processes, as many at a time as there are
// processors.
class AloneRuns {
 public:
  AloneRuns(const Scenario& scenario, const RunOptions& options, RunMonitor& monitor)
      : monitor_(monitor) {
    const Job& job = scenario.job;
    if (!options.baseline || job.parts.size() < 2) return;
    const size_t at_once = std::max(1u, std::thread::hardware_concurrency());
    for (uint32_t part = 0; part < job.parts.size(); ++part) {
      if (part >= at_once && !WaitForNext()) return;
      runs_.push_back(
          std::make_unique<Baseline>(fmt::format("the run of job {} alone", job.parts[part].name),
                                     job.collectives.size(), job.parts.size()));
      if (!runs_.back()->Fork()) {
        monitor_.AddPaired(*runs_.back());
        continue;
      }
      monitor_.BecomeChild(*runs_.back());
      const Job alone = AloneOf(job, part);
      Simulate(scenario, alone, {.baseline = false, .replay_cache = options.replay_cache}, monitor_,
               [&](Simulation& simulation) { simulation.RunPaired(*runs_.back(), false); });
    }
  }

  // Waits for those that have not ended.
  void Pair(const Job& job, RunResult& result) {
    while (outcomes_.size() < runs_.size()) {
      if (!WaitForNext()) return;
    }
    for (uint32_t part = 0; part < outcomes_.size(); ++part) {
      result.jobs[part].alone_end_ps = outcomes_[part].job_end_ps[part];
      result.baseline_cpu_seconds += outcomes_[part].cpu_seconds;
    }
    for (size_t i = 0; i < result.collectives.size() && !outcomes_.empty(); ++i) {
      const uint32_t part = job.PartOf(job.collectives[i].communicator);
      result.collectives[i].alone_duration_ps = outcomes_[part].collectives[i].duration_ps;
    }
  }

 private:
  // False: the run is to end.
  bool WaitForNext() {
    auto outcome = monitor_.WaitFor(*runs_[outcomes_.size()]);
    if (!outcome) return false;
    outcomes_.push_back(std::move(*outcome));
    return true;
  }

  RunMonitor& monitor_;
  std::vector<std::unique_ptr<Baseline>> runs_;  // by part
  std::vector<Baseline::Outcome> outcomes_;      // of the first of them
};

// The same with every byte sent again, where receivers would do without some.
class ReliableRun {
 public:
  ReliableRun(const Scenario& scenario, const RunOptions& options, RunMonitor& monitor)
      : monitor_(monitor) {
    if (!options.baseline || !ToleratesLoss(scenario.job)) return;
    const Job reliable = ReliableOf(scenario.job);
    run_ = std::make_unique<Baseline>("the run without tolerated loss", reliable.collectives.size(),
                                      reliable.parts.size());
    if (!run_->Fork()) {
      monitor_.AddPaired(*run_);
      return;
    }
    monitor_.BecomeChild(*run_);
    Simulate(scenario, reliable, {.baseline = false, .replay_cache = options.replay_cache},
             monitor_, [this](Simulation& simulation) { simulation.RunPaired(*run_, true); });
  }

  // A run that is cut short has no time to compare.
  void Pair(RunResult& result) {
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

 private:
  RunMonitor& monitor_;
  std::unique_ptr<Baseline> run_;
};

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
  AloneRuns alone_runs(scenario, options, monitor);
  ReliableRun reliable_run(scenario, options, monitor);
  RunResult result;
  if (Simulate(scenario, scenario.job, options, monitor,
               [&](Simulation& simulation) { result = simulation.Run(); })) {
    result.notes.push_back(
        "simulated twice: rails that were simulated apart turned out to share a switch's buffer or "
        "a NIC with something else");
  }
  alone_runs.Pair(scenario.job, result);
  reliable_run.Pair(result);
  MarkCutShort(monitor, result);
  return result;
}

}  // namespace railyard
