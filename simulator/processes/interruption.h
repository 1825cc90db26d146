// SPDX-License-Identifier: GPL-2.0-only
// SIGINT, SIGTERM and SIGHUP as a request to end early and in order: children are ended, temporary
// directories removed, and what a run has so far is written.
#pragma once

#include <exception>
#include <string>

namespace railyard {

// While one exists these signals are noted instead of ending the program; one that comes
// more than a second later ends it at once. A signal that was ignored when the program started
// stays ignored. When the last one goes and nobody has taken the note, the signal has its usual
// effect. One thread makes them all, and they nest.
class Interruptible {
 public:
  Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();
};

// The signal that was noted and not taken; 0: none.
int NotedInterruption();
// The same; whoever takes it ends what runs.
int TakeInterruption();

// Called by the handler, so it may do only what signal handlers may; null: nothing.
void SetInterruptionHook(void (*hook)());

// "SIGTERM".
std::string SignalName(int signal);

// What is under way has nothing to show: thrown by whoever takes the signal.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : what_("interrupted by " + SignalName(signal)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};
}  // namespace railyard
