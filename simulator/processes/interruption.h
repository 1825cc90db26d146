// SPDX-License-Identifier: GPL-2.0-only
// Treats SIGINT, SIGTERM and SIGHUP as a request to end early and in order: children are ended,
// temporary directories removed, and the results so far are written.
#pragma once

#include <exception>
#include <string>

namespace railyard {

// Notes these signals while an instance exists, instead of letting them end the program. A second
// signal that arrives more than a second later ends it at once. A signal that was ignored when the
// program started stays ignored. When the last instance is destroyed and the note was not taken,
// the signal has its usual effect. One thread makes all instances, and they nest.
class Interruptible {
 public:
  Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();
};

// Returns the signal that was noted and not taken; 0 if there is none.
int NotedInterruption();
// Takes the noted signal and returns it; the caller then ends the current work.
int TakeInterruption();

// Sets a function that the signal handler calls, so it must be async-signal-safe; null for none.
void SetInterruptionHook(void (*hook)());

// Returns e.g. "SIGTERM".
std::string SignalName(int signal);

// Is thrown by the code that takes the signal; the current work then has no result.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : what_("interrupted by " + SignalName(signal)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};
}  // namespace railyard
