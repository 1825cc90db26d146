// SPDX-License-Identifier: GPL-2.0-only
// Runs a paired run, without faults or with one of the jobs alone, in a forked child process that
// shares one table with its parent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/execution/lanes/critical_path.h"
#include "simulator/processes/child_process.h"

namespace railyard {

// Holds the times of one collective, which are 0 if it did not end.
struct CollectiveOutcome {
  int64_t duration_ps = 0;
  int64_t wait_ps = 0;
  PathTimes spent_ps{};  // if paths are kept
};

class Baseline {
 public:
  struct Outcome {
    std::vector<CollectiveOutcome> collectives;
    std::vector<int64_t> job_end_ps;  // 0 if it did not end
    int64_t simulated_time_ps = 0;
    double cpu_seconds = 0;
  };

  // Maps the shared table for the given numbers of collectives and jobs. The name is used in
  // messages.
  Baseline(std::string name, size_t collective_count, size_t job_count);
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;
  ~Baseline();

  // Returns true in the child. Throws EnvironmentError if the fork fails.
  bool Fork();
  bool is_running() const { return child_.is_running(); }
  bool is_child() const { return is_child_; }

  // Is called in the child. Writes the outcome to the table and ends the process.
  [[noreturn]] void Finish(const Outcome& outcome);
  // Is called in the child in place of Finish(). The parent says so, unless it has failed itself.
  [[noreturn]] void LeaveWithoutMemory();
  // Is called in the parent. Waits for the child; `on_wake` is as for ChildProcess. Returns nullopt
  // if a signal was noted, in which case the child is ended. Throws EnvironmentError if the child
  // did not finish.
  std::optional<Outcome> Wait(const std::function<void()>& on_wake);

  // Holds the child's progress as it last reported it.
  struct Progress {
    int64_t simulated_time_ps = 0;
    double share_done = 0;
  };
  void ReportProgress(const Progress& progress);  // in the child
  Progress progress() const;
  const std::string& name() const { return name_; }

 private:
  struct Header {
    uint64_t finished;
    uint64_t without_memory;
    int64_t simulated_time_ps;
    double cpu_seconds;
    std::atomic<int64_t> progress_time_ps;
    std::atomic<double> progress_share;
  };
  static_assert(std::atomic<double>::is_always_lock_free, "two processes share it");
  Header* header() const { return static_cast<Header*>(memory_); }
  CollectiveOutcome* collectives() const;
  int64_t* job_ends() const { return reinterpret_cast<int64_t*>(collectives() + count_); }

  std::string name_;
  size_t count_;
  size_t job_count_;
  size_t bytes_;
  void* memory_ = nullptr;
  ChildProcess child_;
  bool is_child_ = false;
};

}  // namespace railyard
