// SPDX-License-Identifier: GPL-2.0-only
// The iterations of a job, and how what its GPUs send one another drifts from one to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/job.h"

namespace railyard {

struct IterationBegins {
  uint64_t count = 1;
  // By program of the part: the rank's first operation of each iteration.
  std::vector<std::vector<uint32_t>> of_program;
};
// The iterations of a part: those that its plan, its program's `repeat` or its trace states; else
// the shortest sequence of calls that all programs repeat throughout, as below, each beginning with
// its first call and the gap before it. One iteration where nothing is repeated.
IterationBegins FindIterations(const Job& job, uint32_t part);

// An iteration is the shortest sequence of calls that the programs of all ranks of the part repeat
// throughout: calls are alike in kind, communicator and stream and, but for Sends and Receives, in
// size. A program that repeats nothing is one iteration. For each iteration but the first the
// distance of its pair matrix from the one before: half the sum, over ordered pairs of GPUs, of the
// differences of their shares of the bytes; 0: the same shares, 1: no pair in common. Sends count
// as they are, other collectives as one ring in the order of their communicator.
std::vector<double> DriftOfIterations(const Job& job, uint32_t part);

}  // namespace railyard
