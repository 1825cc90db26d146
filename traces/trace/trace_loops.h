// SPDX-License-Identifier: GPL-2.0-only
// Finds repetitions in a rank's program. A trace file stores the operations of a loop once
// (trace.proto).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

// Describes consecutive iterations of the same operations. All fields agree except times, source
// lines, and numbers (of groups, AllToAllvs and awaited operations) that increase by the same
// amount with each iteration.
struct ProgramLoop {
  size_t begin = 0;  // of the first iteration, in the program
  uint32_t length = 0;
  uint32_t iterations = 0;

  bool operator==(const ProgramLoop&) const = default;
};

inline constexpr uint32_t kLoopOperationsMax = 1U << 18;  // of all iterations of one loop

// Returns loops that do not overlap, in order, each with at least kLoopSavingMin operations beyond
// its first iteration. If several loops begin at an operation, the loop with most operations is
// chosen.
std::vector<ProgramLoop> FindLoops(const std::vector<TraceOperation>& program);
inline constexpr uint32_t kLoopSavingMin = 8;

// Returns the operation with fields that may differ between iterations reduced to the part that may
// not: group, all_to_all and after become 0 or 1; the source line and times become 0.
TraceOperation LoopShape(TraceOperation operation);

// Bounds the expansion of a file's loops by the file's size, so that a small file cannot exhaust
// the memory. Writers and readers call it in the order of the loops.
class LoopBudget {
 public:
  // Admits `operations` beyond a loop's first iteration if that is within the bound for a file that
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
