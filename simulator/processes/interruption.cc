// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/interruption.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace railyard {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> noted{0};
std::atomic<int64_t> noted_at_s{0};
std::atomic<void (*)()> hook{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<void (*)()>::is_always_lock_free,
              "signal handlers use them");

int nested = 0;
std::array<struct sigaction, kSignals.size()> earlier;
struct sigaction earlier_child;

void Note(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int none = 0;
  if (noted.compare_exchange_strong(none, signal)) {
    noted_at_s = now.tv_sec;
  } else if (now.tv_sec > noted_at_s + 1) {  // those that sent it to all of a group come at once
    ::signal(signal, SIG_DFL);
    raise(signal);
  }
  if (const auto call = hook.load()) call();
}

// A caught signal ends sigsuspend(); one that is ignored by default does not.
void WakeUp(int /*signal*/) {}

}  // namespace

Interruptible::Interruptible() {
  if (nested++ > 0) return;
  struct sigaction action = {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = &WakeUp;
  sigaction(SIGCHLD, &action, &earlier_child);
  action.sa_handler = &Note;
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &earlier[i]);
    if (earlier[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interruptible::~Interruptible() {
  if (--nested > 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &earlier[i], nullptr);
  sigaction(SIGCHLD, &earlier_child, nullptr);
  if (const int signal = TakeInterruption(); signal != 0) raise(signal);
}

int NotedInterruption() { return noted.load(); }

int TakeInterruption() { return noted.exchange(0); }

void SetInterruptionHook(void (*called)()) { hook = called; }

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

}  // namespace railyard
