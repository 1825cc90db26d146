// SPDX-License-Identifier: GPL-2.0-only
// Finds the iterations of a job.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/job/job.h"

namespace railyard {

struct IterationBegins {
  uint64_t count = 1;
  // The first operation of each iteration, by the part's programs.
  std::vector<std::vector<uint32_t>> of_program;
};
// Returns the iterations of a part: those that its plan, its program's `repeat` or its trace
// states. If none does, they are the shortest sequence of calls that all programs repeat
// throughout, each beginning with its first call and the gap before it; two calls are the same if
// they have the same kind, communicator, stream and, unless they are Sends or Recvs, size. If
// nothing is repeated, there is one iteration.
IterationBegins FindIterations(const Job& job, PartIndex part);

}  // namespace railyard
