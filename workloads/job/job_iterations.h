// SPDX-License-Identifier: GPL-2.0-only
// The iterations of a job.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/job/job.h"

namespace railyard {

struct IterationBegins {
  uint64_t count = 1;
  // The first operation of each iteration, by program of the part.
  std::vector<std::vector<uint32_t>> of_program;
};
// The iterations of a part: those that its plan, its program's `repeat` or its trace states; else
// the shortest sequence of calls that all programs repeat throughout, each beginning with its first
// call and the gap before it; calls are alike in kind, communicator and stream and, but for Sends
// and Receives, in size. One iteration where nothing is repeated.
IterationBegins FindIterations(const Job& job, uint32_t part);

}  // namespace railyard
