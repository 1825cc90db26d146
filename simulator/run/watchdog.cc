// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/watchdog.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/event_order/event_order.h"
#include "simulator/processes/start_thread.h"
#include "simulator/units/time_end.h"
#include "simulator/units/units.h"

namespace railyard {

Watchdog::Watchdog(const WatchdogSettings& settings, FabricSimulatorImpl& engine,
                   const FabricNetwork& network, const ReplayEngine& replay, OnBark on_bark)
    : settings_(settings),
      engine_(engine),
      network_(network),
      replay_(replay),
      on_bark_(std::move(on_bark)),
      on_end_([] { ns3::Simulator::Stop(); }) {}

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
  engine_.Register(
      event_order::kLook,
      {.name = "looks", .pending = PendingMeans::kObserver, .state = {.why_none = "it only reads"}},
      &Watchdog::HandleLook, this);
  ScheduleLook();
  if (settings_.no_progress_real_ps != kNeverPs) {
    thread_ = StartThread([this] { return std::thread([this] { AskForLooks(); }); });
  }
}

uint64_t Watchdog::Progress() const {
  // Deliveries to others are not progress of the job.
  const uint64_t delivered_bytes = network_.counters().delivered_bytes -
                                   replay_.executor().network_stack().counted_payload_bytes();
  return delivered_bytes + replay_.ledger().calls_started() - replay_.ledger().calls_left();
}

bool Watchdog::SeesNothing(Sight& sight) const {
  const uint64_t progress = Progress();
  // Ranks that compute, at any speed, make progress.
  const bool is_held_up = replay_.is_in_collective() || replay_.streams().has_stopped_computation();
  if (progress != sight.progress || !is_held_up) {
    sight = {.progress = progress};
    return false;
  }
  return ++sight.looks_in_vain >= kLooks;
}

int64_t Watchdog::LookPs() const { return std::max<int64_t>(1, settings_.no_progress_ps / kLooks); }

void Watchdog::ScheduleLook() {
  engine_.ScheduleFabric(SumPs(engine_.NowPs(), LookPs()), event_order::kLook, 0, 0);
}

uint64_t Watchdog::LooksBefore(int64_t time_ps) const {
  return time_ps <= 0 ? 0 : static_cast<uint64_t>((time_ps - 1) / LookPs());
}

void Watchdog::HandleLook(void* self, uint32_t /*target*/) { static_cast<Watchdog*>(self)->Look(); }

void Watchdog::Look() {
  if (has_barked() || replay_.is_complete()) return;
  // No other event is pending: the run ends without the watchdog.
  if (ns3::Simulator::IsFinished()) return;
  if (SeesNothing(in_simulated_time_)) {
    Bark(settings_.no_progress_ps, "simulated");
  }
  if (!has_barked()) ScheduleLook();
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
  std::string why =
      fmt::format("nothing went on for {} of {} time", FormatDuration(limit_ps), which);
  if (on_bark_ && on_bark_(why)) {
    in_simulated_time_ = in_real_time_ = {.progress = Progress()};
    return;
  }
  why_ = std::move(why);
  on_end_();
}

void Watchdog::AskForLooks() {
  // They are for the thread that waits for them.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const auto look = std::chrono::nanoseconds(
      std::max<int64_t>(1, settings_.no_progress_real_ps / kLooks / kPsPerNs));
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, look, [this] { return ended_; })) {
    ns3::Simulator::ScheduleWithContext(ns3::Simulator::NO_CONTEXT, ns3::Time(0),
                                        &Watchdog::LookInRealTime, this);
  }
}

}  // namespace railyard
