// SPDX-License-Identifier: GPL-2.0-only
// A paired run, without faults or with one of the jobs alone, as a forked child process that shares
// one table with its parent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "simulator/replay/critical_path.h"

namespace railyard {

// Of one collective; 0: it did not end.
struct CollectiveOutcome {
  int64_t duration_ps = 0;
  int64_t wait_ps = 0;
  PathTimes spent_ps{};  // where paths are kept
};

class Baseline {
 public:
  struct Outcome {
    std::vector<CollectiveOutcome> collectives;
    std::vector<int64_t> job_end_ps;  // 0: it did not end
    int64_t simulated_time_ps = 0;
    double cpu_seconds = 0;
  };

  // Maps the shared table, for so many collectives and jobs. The name is for messages.
  Baseline(std::string name, size_t collective_count, size_t job_count);
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;
  ~Baseline();

  // True in the child. Throws EnvironmentError if it cannot be forked.
  bool Fork();
  bool is_forked() const { return child_ > 0; }
  bool is_child() const { return is_child_; }

  // In the child: hands the outcome over and ends the process.
  [[noreturn]] void Finish(const Outcome& outcome);
  // In the parent: waits for the child. Throws EnvironmentError if it did not finish.
  Outcome Wait();

 private:
  struct Header {
    uint64_t finished;
    int64_t simulated_time_ps;
    double cpu_seconds;
  };
  Header* header() const { return static_cast<Header*>(memory_); }
  CollectiveOutcome* collectives() const;
  int64_t* job_ends() const { return reinterpret_cast<int64_t*>(collectives() + count_); }

  std::string name_;
  size_t count_;
  size_t job_count_;
  size_t bytes_;
  void* memory_ = nullptr;
  pid_t child_ = 0;
  bool is_child_ = false;
};

}  // namespace railyard
