// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/watchdog.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/units/units.h"

namespace railyard {

Watchdog::Watchdog(const WatchdogSettings& settings, const FabricNetwork& network,
                   const ReplayEngine& replay)
    : settings_(settings), network_(network), replay_(replay) {}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void Watchdog::Start() {
  in_simulated_time_.progress = in_real_time_.progress = Progress();
  ScheduleLook();
  if (settings_.no_progress_real_ps != kNeverPs) thread_ = std::thread([this] { AskForLooks(); });
}

uint64_t Watchdog::Progress() const {
  return network_.counters().delivered_bytes + replay_.calls_started() - replay_.calls_left();
}

bool Watchdog::SeesNothing(Sight& sight) const {
  const uint64_t progress = Progress();
  if (progress != sight.progress || !replay_.is_in_collective()) {
    sight = {.progress = progress};
    return false;
  }
  return ++sight.looks_in_vain >= kLooks;
}

void Watchdog::ScheduleLook() {
  const int64_t look_ps = std::max<int64_t>(1, settings_.no_progress_ps / kLooks);
  ns3::Simulator::Schedule(ns3::PicoSeconds(look_ps), &Watchdog::Look, this);
}

void Watchdog::Look() {
  if (has_barked() || replay_.is_complete()) return;
  // Nothing else is left to happen: the run ends by itself.
  if (ns3::Simulator::IsFinished()) return;
  if (SeesNothing(in_simulated_time_)) {
    Bark(settings_.no_progress_ps, "simulated");
  } else {
    ScheduleLook();
  }
}

void Watchdog::LookInRealTime() {
  if (has_barked() || replay_.is_complete()) return;
  const uint64_t progress = Progress();
  if (progress != in_real_time_.progress) {
    in_real_time_ = {.progress = progress};
  } else if (++in_real_time_.looks_in_vain >= kLooks) {
    Bark(settings_.no_progress_real_ps, "real");
  }
}

void Watchdog::Bark(int64_t limit_ps, const char* which) {
  why_ = fmt::format("nothing went on for {} of {} time", FormatDuration(limit_ps), which);
  ns3::Simulator::Stop();
}

void Watchdog::AskForLooks() {
  const auto look = std::chrono::nanoseconds(
      std::max<int64_t>(1, settings_.no_progress_real_ps / kLooks / kPsPerNs));
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, look, [this] { return ended_; })) {
    ns3::Simulator::ScheduleWithContext(ns3::Simulator::NO_CONTEXT, ns3::Time(0),
                                        &Watchdog::LookInRealTime, this);
  }
}

}  // namespace railyard
