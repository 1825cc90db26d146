// SPDX-License-Identifier: GPL-2.0-only
// Builds one simulation of a scenario: its fabric and everything that acts on it. RunScenario()
// runs it to its end in a separate simulator; an ns-3 program runs it together with the program's
// own events (simulator/ns3/).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ns3/ptr.h>

#include "analysis/result/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/faults/circuit_scheduler.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/run/job_aborter.h"
#include "simulator/run/job_restarter.h"
#include "simulator/run/loss_recorder.h"
#include "simulator/run/run_options.h"
#include "simulator/run/watchdog.h"
#include "simulator/scenario/schema/scenario.h"
#include "simulator/traffic/background_load.h"
#include "topologies/routing/routing.h"
#include "workloads/job/job.h"

namespace railyard {

// Returns the CPU time that this process has used, and its peak resident memory.
double CpuSeconds();
uint64_t PeakRssBytes();

// Builds the scenario's fabric; its models have the scenario's attributes, and ns-3's defaults for
// attributes that the scenario does not state. `scenario` and `engine` must outlive it.
ns3::Ptr<FabricNetwork> BuildNetwork(const Scenario& scenario, FabricSimulatorImpl& engine);

struct RecordedSimulation;

// Says what the replay cache may take the place of.
enum class ReplayScope : uint8_t {
  kPartitions,  // the whole network, or parts of it that are independent
  kNetwork,     // the whole network only
  kNothing,     // because other processes simulate the rest of the network
};

class Simulation {
 public:
  // Connects a simulation to its surroundings.
  struct Surroundings {
    // Is called at the instant of the first fault, before anything changes.
    std::function<void()> before_first_fault{};
    // Is called when the last call has ended or was aborted, or when no call can continue; possibly
    // more than once.
    std::function<void()> on_ended{};
    // Is called when the fabric's routes have changed.
    std::function<void()> on_routes_changed{};
    // Delays the start of the job, but not the faults.
    int64_t job_delay_ps = 0;
    ReplayScope replay_scope = ReplayScope::kPartitions;
    // Take the place of the scenario's, for an ns-3 program may have changed attributes.
    std::optional<NetworkStackSettings> stack{};
    std::optional<RoutingDelays> routing{};
  };

  // Builds everything on a network that BuildNetwork() has made for the scenario. `job` is the
  // scenario's, or one of its parts alone. `scenario` and `job` must outlive this.
  Simulation(const Scenario& scenario, const Job& job, const RunOptions& options,
             const ns3::Ptr<FabricNetwork>& network, Surroundings surroundings);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Schedules the job's first operations.
  void Start();
  // Must be called instead of Start() if other processes simulate the job.
  void StartDivided();
  // Counts the looks that the watchdog would have had in a divided run.
  void AbsorbLooks();

  // Returns the result of this run only, at its end or, with `goes_on`, between two events.
  // `interruption` says why it was ended early; empty if it was not.
  RunResult Record(const std::string& interruption, bool goes_on) const;
  // Returns the result so far, within an event.
  RunResult RecordWithinEvent() const;
  // Returns true if the watchdog has found that there is no more progress.
  bool has_stalled() const { return watchdog_ && watchdog_->has_barked(); }

  const Scenario& scenario() const { return scenario_; }
  const Job& job() const { return job_; }  // with the current places of its ranks
  FabricSimulatorImpl& engine() { return engine_; }
  FabricNetwork& network() { return *network_; }
  const EcmpRouting& routing() const { return routing_; }
  ReplayEngine& replay() { return *replay_; }
  const ReplayEngine& replay() const { return *replay_; }
  FaultInjector& faults() { return *faults_; }
  bool has_fault_begun() const { return faults_->has_begun(); }

 private:
  // Returns what is recorded, with the default moment: at the end.
  RecordedSimulation Recorded() const;
  RunResult Record(const RecordedSimulation& recorded) const;
  void BuildFaults();
  void BuildRestarts();
  void OnRoutesChanged();
  bool GoesOn(const std::string& why);

  const Scenario& scenario_;
  const Surroundings surroundings_;
  const std::unique_ptr<Job> own_job_;  // set if ranks may be swapped, or if it begins later
  const Job& job_;
  const std::optional<EstimateResult> estimate_;
  std::chrono::steady_clock::time_point wall_start_ = std::chrono::steady_clock::now();
  FabricSimulatorImpl& engine_;
  const ns3::Ptr<FabricNetwork> network_;
  EcmpRouting routing_;
  LossRecorder losses_;
  std::unique_ptr<ReplayEngine> replay_;
  std::unique_ptr<FaultInjector> faults_;
  std::unique_ptr<BackgroundLoad> load_;
  std::unique_ptr<CircuitScheduler> circuits_;
  std::deque<JobAborter> aborters_;                        // by part of the job
  std::vector<std::unique_ptr<JobRestarter>> restarters_;  // by part; null if it does not restart
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace railyard
