// SPDX-License-Identifier: GPL-2.0-only
// Handles requests from outside while a run is in progress: to end (interruption.h), or to report
// its progress, periodically or upon SIGUSR1. Also saves its results periodically. Signal handlers
// request a look between two events (engine/look.h).
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <sys/time.h>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/interruption.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/run/baseline.h"
#include "simulator/run/run_options.h"
#include "simulator/shards/window_exchange.h"

namespace railyard {

// Only one may exist at a time.
class RunMonitor {
 public:
  RunMonitor(ProgressOptions progress, SavingOptions saving);
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;
  ~RunMonitor();

  struct Watched {
    FabricSimulatorImpl& engine;
    const FabricNetwork& network;
    const ReplayEngine& replay;
    std::function<void(const SavingOptions&)> save_so_far;  // calls `save` with the results so far
  };
  // Calls ns3::Simulator::Run(), unless the end has been requested already.
  void Run(const Watched& run);
  // Waits for a run in another process; returns nullopt if the end of this one is requested.
  std::optional<Baseline::Outcome> WaitFor(Baseline& baseline);

  // Waits for the processes of a divided run, which end early if the end of this one is requested.
  // Throws EnvironmentError if one of them fails.
  void WaitForParts(std::span<ChildProcess* const> parts, WindowExchange& exchange);

  void AddPaired(const Baseline& baseline) { paired_.push_back(&baseline); }
  // Is called in a forked child. Makes it report its progress to its parent at each look.
  void BecomeChild(Baseline& baseline);

  // Returns e.g. "interrupted by SIGTERM after 6.0 s"; empty if nothing requests the end.
  const std::string& interruption() const { return interruption_; }
  // Returns true if a run in another process was abandoned because of an interruption.
  bool has_given_up() const { return has_given_up_; }

 private:
  bool Look(const Watched& run);
  void NoteInterruption();
  void ShowIfDue();
  void SaveIfDue(const Watched& run);
  // Returns the interval of the monitor's periodic looks: that of progress, if there is one.
  std::chrono::milliseconds Interval() const;

  const Interruptible interruptible_;
  const ProgressOptions options_;
  const SavingOptions saving_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_save_ = start_ + saving_.interval;
  RunProgress progress_;
  std::vector<const Baseline*> paired_;
  Baseline* child_of_ = nullptr;
  std::string interruption_;
  bool has_given_up_ = false;
  // The process's own actions for SIGUSR1 and SIGALRM, and its timer ITIMER_REAL.
  struct sigaction request_before_ = {};
  struct sigaction alarm_before_ = {};
  itimerval timer_before_ = {};
};

}  // namespace railyard
