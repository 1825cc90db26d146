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

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/engine/look.h"

namespace railyard {
namespace {

constexpr std::chrono::milliseconds kLooksForSaving{1'000};
// Saving its results takes at most one part in so many of the time of a run.
constexpr int kSavingShare = 50;

std::atomic<bool> is_due{false};
std::atomic<bool> is_asked{false};

void OnSignal(int signal) {
  (signal == SIGUSR1 ? is_asked : is_due) = true;
  RequestLook();
}

// Returns the action so far.
struct sigaction Catch(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  struct sigaction before = {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = handler;
  sigaction(signal, &action, &before);
  return before;
}

// Returns the timer so far.
itimerval SetTimer(std::chrono::milliseconds interval) {
  const timeval time = {.tv_sec = interval.count() / 1'000,
                        .tv_usec = interval.count() % 1'000 * 1'000};
  const itimerval timer = {.it_interval = time, .it_value = time};
  itimerval before = {};
  setitimer(ITIMER_REAL, &timer, &before);
  return before;
}

uint64_t RssBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

RunMonitor::RunMonitor(ProgressOptions progress, SavingOptions saving)
    : options_(std::move(progress)), saving_(std::move(saving)) {
  SetInterruptionHook(&RequestLook);
  if (options_.show) request_before_ = Catch(SIGUSR1, &OnSignal);
  if (Interval().count() == 0) return;
  alarm_before_ = Catch(SIGALRM, &OnSignal);
  timer_before_ = SetTimer(Interval());
}

std::chrono::milliseconds RunMonitor::Interval() const {
  if (options_.show && options_.interval.count() > 0) return options_.interval;
  if (!saving_.save) return std::chrono::milliseconds{0};
  return std::clamp(saving_.interval, std::chrono::milliseconds{1}, kLooksForSaving);
}

RunMonitor::~RunMonitor() {
  SetInterruptionHook(nullptr);
  if (Interval().count() > 0) {
    SetTimer(std::chrono::milliseconds{0});
    sigaction(SIGALRM, &alarm_before_, nullptr);
    setitimer(ITIMER_REAL, &timer_before_, nullptr);
  }
  if (!options_.show) return;
  // It may come late.
  if (request_before_.sa_handler == SIG_DFL) request_before_.sa_handler = SIG_IGN;
  sigaction(SIGUSR1, &request_before_, nullptr);
}

void RunMonitor::Run(const Watched& run) {
  SetLook([&] {
    const bool ends = Look(run);
    if (!ends) SaveIfDue(run);
    return ends;
  });
  NoteInterruption();
  if (interruption_.empty()) ns3::Simulator::Run();
  SetLook({});
  Look(run);
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

void RunMonitor::WaitForParts(std::span<ChildProcess* const> parts, WindowExchange& exchange) {
  NoteInterruption();
  if (!interruption_.empty()) exchange.AskToEnd();
  const auto show = [&] {
    progress_.simulated_time_ps = 0;
    progress_.hops = 0;
    progress_.share_done = 0;
    for (uint32_t shard = 0; shard < exchange.shards(); ++shard) {
      const ShardProgress& progress = exchange.ProgressOf(shard);
      progress_.simulated_time_ps =
          std::max<int64_t>(progress_.simulated_time_ps, progress.now_ps.load());
      progress_.hops += progress.hops.load();
      progress_.share_done += progress.share_done.load();
    }
    ShowIfDue();
  };
  for (size_t left = parts.size(); left > 0;) {
    const auto exit = ChildProcess::WaitForAny(parts, show);
    if (!exit) {
      NoteInterruption();
      exchange.AskToEnd();
      continue;
    }
    --left;
    if (exit->status == 0) continue;
    throw EnvironmentError(
        exit->status > 128
            ? fmt::format("part {} of the run was killed by signal {}", exit->index,
                          exit->status - 128)
            : fmt::format("part {} of the run ended with status {}", exit->index, exit->status));
  }
}

void RunMonitor::BecomeChild(Baseline& baseline) {
  child_of_ = &baseline;
  paired_.clear();
  // Timers are not inherited.
  if (options_.show) SetTimer(options_.interval);
}

bool RunMonitor::Look(const Watched& run) {
  const NetworkCounters& counters = run.network.counters();
  progress_.simulated_time_ps = std::max(run.engine.NowPs(), run.replay.end_ps());
  progress_.share_done = run.replay.ShareDone();
  progress_.collectives = run.replay.ledger().collectives_ended();
  progress_.replayed = run.replay.ledger().collectives_replayed();
  progress_.hops = counters.packet_hops + counters.control_hops;
  if (child_of_ != nullptr) {
    child_of_->ReportProgress(
        {.simulated_time_ps = progress_.simulated_time_ps, .share_done = progress_.share_done});
    return false;
  }
  NoteInterruption();
  ShowIfDue();
  if (interruption_.empty()) return false;
  run.engine.Stop();
  return true;
}

void RunMonitor::SaveIfDue(const Watched& run) {
  const auto begin = std::chrono::steady_clock::now();
  if (!saving_.save || child_of_ != nullptr || begin < next_save_) return;
  if (run.replay.is_complete()) return;  // the next result is that of the run
  run.save_so_far(saving_);
  const auto end = std::chrono::steady_clock::now();
  next_save_ = end + std::max<std::chrono::steady_clock::duration>(saving_.interval,
                                                                   kSavingShare * (end - begin));
}

void RunMonitor::NoteInterruption() {
  const int signal = child_of_ == nullptr ? TakeInterruption() : 0;
  if (signal == 0) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  interruption_ = fmt::format("interrupted by {} after {:.1f} s", SignalName(signal), seconds);
}

void RunMonitor::ShowIfDue() {
  const bool is_time = is_due.exchange(false) && options_.interval.count() > 0;
  if ((!is_asked.exchange(false) && !is_time) || !options_.show) return;
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
