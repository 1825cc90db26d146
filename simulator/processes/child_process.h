// SPDX-License-Identifier: GPL-2.0-only
// Runs child processes that do not outlive this process: forked copies of it, this program with
// other arguments, and other programs whose output is wanted.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "simulator/processes/interruption.h"

namespace railyard {

// Owns a child process, which ends with this object. A forked copy is killed then, and when its
// parent dies. A started program receives SIGTERM, so that it can clean up, and is killed if that
// takes longer than ten seconds.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // NOLINT(bugprone-exception-escape)

  // Returns true in the child, which does not receive signals from a terminal or to the process
  // group. `what` is used in messages. Throws EnvironmentError if the fork fails.
  [[nodiscard]] bool Fork(std::string_view what);
  // Starts `railyard ARGUMENTS…`, with its standard output and error in the file `log` if that is
  // not empty. Throws EnvironmentError if it cannot be started.
  void Start(const std::vector<std::string>& arguments, const std::string& log = {});
  bool is_running() const { return id_ > 0; }
  void End();
  // Sends SIGTERM to a running process and does not wait; safe within `on_wake` of a wait for it.
  void AskToEnd() const;

  // Holds an exit status as in a shell: 128 + signal if a signal ended the process.
  struct Exit {
    size_t index = 0;  // of the process among `processes`
    int status = 0;
  };
  // Waits until one of the processes has ended. Processes that do not run are skipped; at least one
  // must run. Returns nullopt if a signal was noted (NotedInterruption()); all processes continue
  // then. `on_wake` is called whenever this process has caught another signal, for instance a
  // timer's.
  static std::optional<Exit> WaitForAny(std::span<ChildProcess* const> processes,
                                        const std::function<void()>& on_wake = {});
  std::optional<int> Wait(const std::function<void()>& on_wake = {});

 private:
  // Returns true if the process had ended; it is no longer running then.
  bool HasEnded(int& status);

  pid_t id_ = 0;
  pid_t parent_ = 0;  // to distinguish it from its forked copies
  bool is_copy_ = false;
  // Notes the signals that end a wait.
  Interruptible interruptible_;
};

struct ProgramEnd {
  int status = 0;      // as in ChildProcess::Exit
  std::string output;  // standard output and error, as printed

  // Returns the output as one line, for messages.
  std::string OneLine() const;
};
inline constexpr int kNotStarted = 127;  // the status of a program that cannot be started

// Runs a program, found by PATH, in `directory` (this one if empty) with nothing to read, until it
// has ended, whatever signal is noted meanwhile; SIGALRM ends it after ten minutes. Its words are
// its name and its arguments. If it cannot be started, the status is kNotStarted and the output
// says why. Throws EnvironmentError if there is no process or memory to be had.
ProgramEnd OutputOf(std::vector<std::string> words, const std::string& directory = {});

}  // namespace railyard
