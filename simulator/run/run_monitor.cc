// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/run_monitor.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include <ns3/simulator.h>

#include "simulator/engine/look.h"

namespace railyard {
namespace {

std::atomic<bool> is_due{false};

void OnSignal(int /*signal*/) {
  is_due = true;
  RequestLook();
}

void Catch(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

void SetTimer(std::chrono::milliseconds interval) {
  const timeval time = {.tv_sec = interval.count() / 1'000,
                        .tv_usec = interval.count() % 1'000 * 1'000};
  const itimerval timer = {.it_interval = time, .it_value = time};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

uint64_t RssBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

RunMonitor::RunMonitor(ProgressOptions options) : options_(std::move(options)) {
  SetInterruptionHook(&RequestLook);
  if (!options_.show) return;
  Catch(SIGALRM, &OnSignal);
  Catch(SIGUSR1, &OnSignal);
  SetTimer(options_.interval);
}

RunMonitor::~RunMonitor() {
  SetInterruptionHook(nullptr);
  if (!options_.show) return;
  SetTimer({});
  Catch(SIGALRM, SIG_DFL);
  Catch(SIGUSR1, SIG_IGN);  // it may come late
}

void RunMonitor::Run(FabricSimulatorImpl& engine, const FabricNetwork& network,
                     const ReplayEngine& replay) {
  SetLook([&] { return Look(engine, network, replay); });
  NoteInterruption();
  if (interruption_.empty()) ns3::Simulator::Run();
  SetLook({});
  Look(engine, network, replay);
}

std::optional<Baseline::Outcome> RunMonitor::WaitFor(Baseline& baseline) {
  std::optional<Baseline::Outcome> outcome;
  if (interruption_.empty()) outcome = baseline.Wait([this] { ShowIfDue(); });
  std::erase(paired_, &baseline);
  if (outcome) return outcome;
  NoteInterruption();
  has_given_up_ = true;
  return outcome;
}

void RunMonitor::BecomeChild(Baseline& baseline) {
  child_of_ = &baseline;
  paired_.clear();
  // Timers are not inherited.
  if (options_.show) SetTimer(options_.interval);
}

bool RunMonitor::Look(FabricSimulatorImpl& engine, const FabricNetwork& network,
                      const ReplayEngine& replay) {
  progress_.simulated_time_ps = std::max(engine.NowPs(), replay.end_ps());
  progress_.share_done = replay.ShareDone();
  progress_.collectives = replay.collectives_ended();
  progress_.replayed = replay.collectives_replayed();
  progress_.hops = network.counters().packet_hops + network.counters().control_hops;
  if (child_of_ != nullptr) {
    child_of_->TellProgress(
        {.simulated_time_ps = progress_.simulated_time_ps, .share_done = progress_.share_done});
    return false;
  }
  NoteInterruption();
  ShowIfDue();
  if (interruption_.empty()) return false;
  engine.Stop();
  return true;
}

void RunMonitor::NoteInterruption() {
  const int signal = child_of_ == nullptr ? TakeInterruption() : 0;
  if (signal == 0) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  interruption_ = fmt::format("interrupted by {} after {:.1f} s", SignalName(signal), seconds);
}

void RunMonitor::ShowIfDue() {
  if (!is_due.exchange(false) || !options_.show) return;
  progress_.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  progress_.rss_bytes = RssBytes();
  progress_.paired.clear();
  for (const Baseline* baseline : paired_) {
    const Baseline::Progress paired = baseline->progress();
    progress_.paired.push_back({.name = baseline->name(),
                                .simulated_time_ps = paired.simulated_time_ps,
                                .share_done = paired.share_done});
  }
  options_.show(progress_);
}

}  // namespace railyard
