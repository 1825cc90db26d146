// SPDX-License-Identifier: GPL-2.0-only
// Processes of ours that do not outlive this one: forked copies of it, and this program started
// with other arguments.
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

// Ended with its owner. A forked copy is killed then, and when its parent dies; a started program
// gets SIGTERM, so that it can clean up, and is killed if that takes it longer than ten seconds.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  // True in the child, which signals from a terminal or to the group of processes do not reach.
  // `what` is for messages. EnvironmentError where it cannot be forked.
  [[nodiscard]] bool Fork(std::string_view what);
  // Starts `railyard ARGUMENTS…`, with its standard output and error in the file `log` if that is
  // not empty. EnvironmentError where it cannot be started.
  void Start(const std::vector<std::string>& arguments, const std::string& log = {});
  bool is_running() const { return id_ > 0; }
  void End();
  // Sends SIGTERM to what runs and does not wait; safe within `on_wake` of a wait for it.
  void AskToEnd() const;

  // An exit status as in a shell: 128 + signal if a signal ended the process.
  struct Exit {
    size_t index = 0;  // of the process among those waited for
    int status = 0;
  };
  // Waits until one of them has ended; those that do not run are passed over, and one must run.
  // nullopt: a signal was noted (NotedInterruption()); all go on. `on_wake` is called whenever the
  // process has caught another signal, a timer's for instance.
  static std::optional<Exit> WaitForAny(std::span<ChildProcess* const> processes,
                                        const std::function<void()>& on_wake = {});
  std::optional<int> Wait(const std::function<void()>& on_wake = {});

 private:
  // Whether it had ended; then it does not run any more.
  bool HasEnded(int& status);

  pid_t id_ = 0;
  pid_t parent_ = 0;  // forked copies of it have other children
  bool is_copy_ = false;
  // Its parent must see the signals that end waiting.
  Interruptible interruptible_;
};

}  // namespace railyard
