// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/simulation.h"

#include <algorithm>
#include <ctime>
#include <sys/resource.h>
#include <utility>

#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "simulator/run/result_recorder.h"
#include "simulator/run/time_breakdown.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

void SetAttributes(const std::vector<ModelAttribute>& attributes, ns3::Object& model) {
  for (const ModelAttribute& attribute : attributes) {
    if (attribute.type == model.GetInstanceTypeId().GetName()) {
      model.SetAttribute(attribute.name, ns3::StringValue(attribute.value));
    }
  }
}

bool MayRestart(const Scenario& scenario) {
  return std::ranges::any_of(scenario.restarts, &RestartSettings::restarts);
}

ReplayRules RulesOf(const Scenario& scenario, const RunOptions& options, ReplayScope scope) {
  const bool uses_cache = options.captures.empty() && options.replay_cache != ReplayCacheMode::kOff;
  ReplayRules rules{
      .nccl = scenario.nccl,
      .stack = scenario.stack,
      .gpu = scenario.gpu,
      .cache = uses_cache && scope != ReplayScope::kNothing ? options.replay_cache
                                                            : ReplayCacheMode::kOff,
      .lists_obstacles = uses_cache,
      // Parts of flow mode's state cannot be visited alone.
      .partition_episodes = scope == ReplayScope::kPartitions && !scenario.stack.uses_flows,
      .seed = scenario.seed,
      .keep_paths = !scenario.faults.empty() || !options.perfetto_file.empty()};
  for (const FaultSpec& fault : scenario.faults) {
    rules.has_load |= fault.kind == FaultKind::kBackgroundLoad;
    rules.faulty_links.insert(rules.faulty_links.end(), fault.links.begin(), fault.links.end());
    rules.faulty_gpus.insert(rules.faulty_gpus.end(), fault.gpus.begin(), fault.gpus.end());
    const std::vector<CollectiveIndex>& anchors = fault.timeline.anchor.collectives;
    rules.watched.insert(rules.watched.end(), anchors.begin(), anchors.end());
  }
  if (options.estimate) rules.kept_rank = GlobalRank{options.estimate->rank};
  return rules;
}

// Returns the time that a run without failures spends on checkpoints.
int64_t SavePs(const RestartSettings& settings) {
  return static_cast<int64_t>(settings.checkpoint_count) * settings.save_ps;
}

// Returns the simulation's own copy of the job, if it needs one.
std::unique_ptr<Job> OwnJob(const Scenario& scenario, const Job& job, int64_t delay_ps) {
  if (!MayRestart(scenario) && delay_ps == 0) return nullptr;
  auto own = std::make_unique<Job>(job);
  for (JobPart& part : own->parts) part.start_ps = SumPs(part.start_ps, delay_ps);
  return own;
}

}  // namespace

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

ns3::Ptr<FabricNetwork> BuildNetwork(const Scenario& scenario, FabricSimulatorImpl& engine) {
  const auto network = ns3::CreateObject<FabricNetwork>();
  network->SetAttribute("Seed", ns3::UintegerValue(scenario.seed));
  SetAttributes(scenario.models, *network);
  network->Build(scenario.fabric, engine);
  for (DeviceId id{0}; id < scenario.fabric.device_count(); ++id) {
    if (const auto model = network->GetSwitch(id)) SetAttributes(scenario.models, *model);
  }
  for (const SwitchVariant& variant : scenario.switch_variants) {
    for (const DeviceId id : variant.switches) {
      SetAttributes(variant.attributes, *network->GetSwitch(id));
    }
  }
  network->Configure();
  return network;
}

Simulation::Simulation(const Scenario& scenario, const Job& job, const RunOptions& options,
                       const ns3::Ptr<FabricNetwork>& network, Surroundings surroundings)
    : scenario_(scenario),
      surroundings_(std::move(surroundings)),
      own_job_(OwnJob(scenario, job, surroundings_.job_delay_ps)),
      job_(own_job_ ? *own_job_ : job),
      estimate_(options.estimate),
      engine_(network->engine()),
      network_(network),
      routing_(scenario.fabric, scenario.seed),
      losses_(scenario.faults.size()) {
  ReplayRules rules = RulesOf(scenario, options, surroundings_.replay_scope);
  if (surroundings_.stack) rules.stack = *surroundings_.stack;
  // A part alone has other communicators.
  if (&job == &scenario.job) rules.planners = scenario.planners;
  replay_ =
      std::make_unique<ReplayEngine>(scenario.fabric, *network_, routing_, job_, rules, losses_);
  if (surroundings_.on_ended) replay_->hooks().on_all_ended = surroundings_.on_ended;
  network_->SetRouting(routing_);
  BuildFaults();
  BuildRestarts();
  if (scenario.watchdog.no_progress_ps > 0) {
    watchdog_ = std::make_unique<Watchdog>(scenario.watchdog, engine_, *network_, *replay_,
                                           [this](const std::string& why) { return GoesOn(why); });
    if (surroundings_.on_ended) watchdog_->SetOnEnd(surroundings_.on_ended);
  }
}

void Simulation::BuildFaults() {
  faults_ = std::make_unique<FaultInjector>(
      scenario_.fabric, scenario_.faults,
      surroundings_.routing ? *surroundings_.routing : scenario_.routing, *network_, routing_,
      FaultInjector::Hooks{
          .before_first_fault =
              [this] {
                if (surroundings_.before_first_fault) surroundings_.before_first_fault();
              },
          .on_routes_changed = [this] { OnRoutesChanged(); },
          .set_gpu_speed = [this](GpuIndex gpu, double speed) { replay_->SetGpuSpeed(gpu, speed); },
          .set_load = [this](FaultIndex fault, bool runs) { load_->Set(fault, runs); }});
  load_ = std::make_unique<BackgroundLoad>(scenario_.fabric, scenario_.faults,
                                           replay_->executor().network_stack().Plain(), engine_,
                                           [this] { return replay_->ledger().IsAnyPartUp(); });
  circuits_ = std::make_unique<CircuitScheduler>(scenario_.fabric, *network_, routing_,
                                                 [this] { OnRoutesChanged(); });
  losses_.Observe(*faults_, *replay_, engine_);
}

void Simulation::BuildRestarts() {
  restarters_.resize(job_.parts.size());
  for (PartIndex part{}; part < job_.parts.size(); ++part) {
    const RestartSettings& restart = scenario_.restarts[part];
    aborters_.emplace_back(restart.restarts ? restart.detection : scenario_.watchdog.detection,
                           *replay_, engine_, part);
    if (!restart.restarts) continue;
    restarters_[part] = std::make_unique<JobRestarter>(restart, part,
                                                       JobRestarter::Run{.fabric = scenario_.fabric,
                                                                         .job = *own_job_,
                                                                         .replay = *replay_,
                                                                         .engine = engine_,
                                                                         .faults = *faults_,
                                                                         .load = *load_});
  }
  losses_.SetOnRankError([this](GlobalRank rank, const std::string& why) {
    const PartIndex part = replay_->calls().PartOf(rank);
    JobRestarter* const restarter = restarters_[part].get();
    if (!aborters_[part].has_error() && restarter != nullptr && restarter->OnJobFailed(why)) return;
    aborters_[part].OnRankError(rank, why);
  });
}

void Simulation::OnRoutesChanged() {
  network_->OnRoutesChanged();
  replay_->executor().ResolvePaths();
  if (surroundings_.on_routes_changed) surroundings_.on_routes_changed();
}

void Simulation::Start() {
  wall_start_ = std::chrono::steady_clock::now();
  engine_.SetTimeEnd(kTimeEndPs);
  replay_->Start();
  if (watchdog_) watchdog_->Start();
}

void Simulation::StartDivided() {
  wall_start_ = std::chrono::steady_clock::now();
  engine_.SetTimeEnd(kTimeEndPs);
}

void Simulation::AbsorbLooks() {
  if (watchdog_) engine_.Absorb(0, watchdog_->LooksBefore(engine_.NowPs()));
}

RecordedSimulation Simulation::Recorded() const {
  return {.scenario = scenario_,
          .job = job_,
          .network = *network_,
          .replay = *replay_,
          .losses = losses_,
          .faults = *faults_};
}

RunResult Simulation::Record(const std::string& interruption, bool goes_on) const {
  RecordedSimulation recorded = Recorded();
  recorded.interruption = interruption;
  recorded.goes_on = goes_on;
  return Record(recorded);
}

RunResult Simulation::RecordWithinEvent() const {
  RecordedSimulation recorded = Recorded();
  recorded.goes_on = true;
  recorded.is_within_event = true;
  return Record(recorded);
}

RunResult Simulation::Record(const RecordedSimulation& recorded) const {
  RunResult result = RecordResult(recorded);
  for (PartIndex part{}; part < result.jobs.size(); ++part) {
    JobResult& job = result.jobs[part];
    job.abort = aborters_[part].result();
    if (restarters_[part]) job.restart = restarters_[part]->result();
    job.restart.save_ps = SavePs(scenario_.restarts[part]);
  }
  result.estimate = estimate_;
  if (estimate_ && result.jobs.front().restart.restarts == 0) {
    result.estimate->simulated = BreakdownOf(job_, *replay_, GlobalRank{estimate_->rank});
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

// Handles a long time without progress. Ranks that hang since an error and jobs that wait for
// their restart are not a stall, because their end is known. Jobs that do not progress restart if
// they can.
bool Simulation::GoesOn(const std::string& why) {
  bool goes_on = std::ranges::any_of(aborters_, &JobAborter::is_waiting);
  for (PartIndex part{}; part < restarters_.size(); ++part) {
    JobRestarter* const restarter = restarters_[part].get();
    if (restarter == nullptr) continue;
    goes_on |=
        restarter->is_down() || (replay_->streams().IsHeldUp(part) &&
                                 !aborters_[part].has_error() && restarter->OnJobFailed(why));
  }
  return goes_on;
}

}  // namespace railyard
