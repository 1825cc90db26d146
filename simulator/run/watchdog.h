// SPDX-License-Identifier: GPL-2.0-only
// Ends a run without progress, even if events still happen. A run has no progress if no call began
// or ended and no byte of a job was delivered for a stated simulated time, during which a
// collective ran or a GPU was halted in its computation, or for a stated real time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// Checks eight times within the stated time, so it ends a run at most an eighth of that time late.
class Watchdog {
 public:
  // Is called before the run is ended. Returns true if the run continues nevertheless, because the
  // job restarts.
  using OnBark = std::function<bool(const std::string& why)>;
  // All references must outlive this.
  Watchdog(const WatchdogSettings& settings, FabricSimulatorImpl& engine,
           const FabricNetwork& network, const ReplayEngine& replay, OnBark on_bark = {});
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // Sets the function that ends the run; the default is ns3::Simulator::Stop().
  void SetOnEnd(std::function<void()> on_end) { on_end_ = std::move(on_end); }
  // Schedules the first check and starts the clock of real time.
  void Start();
  // Returns the number of its looks before that simulated time in a run that it does not end.
  uint64_t LooksBefore(int64_t time_ps) const;
  bool has_barked() const { return !why_.empty(); }
  // Returns the reason why it ended the run; empty if it has not.
  const std::string& why() const { return why_; }

 private:
  static constexpr int kLooks = 8;
  struct Sight {
    uint64_t progress = 0;
    int looks_in_vain = 0;
  };

  uint64_t Progress() const;
  bool SeesNothing(Sight& sight) const;
  static void HandleLook(void* self, uint32_t target);
  int64_t LookPs() const;
  void ScheduleLook();
  void Look();
  void LookInRealTime();
  void AskForLooks();
  void Bark(int64_t limit_ps, const char* which);

  const WatchdogSettings& settings_;
  FabricSimulatorImpl& engine_;
  const FabricNetwork& network_;
  const ReplayEngine& replay_;
  OnBark on_bark_;
  std::function<void()> on_end_;
  Sight in_simulated_time_;
  Sight in_real_time_;
  std::string why_;
  // These belong to a thread that requests looks at the simulation at intervals of real time.
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace railyard
