// SPDX-License-Identifier: GPL-2.0-only
// Repetitions in a rank's program. A trace file stores the operations of a loop once (trace.proto).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

// Consecutive iterations of the same operations: kinds, communicators, sizes and all else agree
// but for times, source lines, and numbers (of groups, AllToAllvs and operations that are waited
// for) that grow by the same amount with each iteration.
struct ProgramLoop {
  size_t begin = 0;  // of the first iteration, in the program
  uint32_t length = 0;
  uint32_t iterations = 0;

  bool operator==(const ProgramLoop&) const = default;
};

inline constexpr uint32_t kLoopOperationsMax = 1U << 18;  // of all iterations of one loop

// Returns loops that do not overlap, in order, each with at least kLoopSavingMin operations beyond
// its first iteration. Of the loops that begin at an operation, the one with most of them is taken.
std::vector<ProgramLoop> FindLoops(const std::vector<TraceOperation>& program);
inline constexpr uint32_t kLoopSavingMin = 8;

// Returns what the fields that differ between iterations have in common, with the others as they
// are: group, all_to_all and after are 0 or 1; the source line and times are 0.
TraceOperation LoopShape(TraceOperation operation);

// Bounds what the loops of a file expand to by its size, so that a small file cannot exhaust the
// memory. Writers and readers ask in the order of the loops.
class LoopBudget {
 public:
  // Takes `operations` beyond a loop's first iteration if that is within the bound for a file that
  // has `file_bytes` up to the end of the loop; else returns false.
  bool Take(uint64_t operations, uint64_t file_bytes) {
    if (taken_ + operations > kFree + kPerByte * file_bytes) return false;
    taken_ += operations;
    return true;
  }

 private:
  static constexpr uint64_t kFree = 1'000'000;
  static constexpr uint64_t kPerByte = 32;
  uint64_t taken_ = 0;
};

}  // namespace railyard
