// SPDX-License-Identifier: GPL-2.0-only
// A small RunResult whose every figure can be worked out by hand.
#pragma once

#include <string>

#include "analysis/result/run_result.h"

namespace railyard::testing {

// Four GPUs on two servers, two AllReduces and one AllGather, a link that flapped during the second
// AllReduce. Durations: 1, 10 and 2 ms; fault-free: 1, 2.5 and 2 ms.
RunResult MadeUpRun();

// Returns MadeUpRun() without faults and without a paired run.
RunResult MadeUpRunWithoutFaults();

// An empty directory of the running test's own, removed with everything in it.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

}  // namespace railyard::testing
