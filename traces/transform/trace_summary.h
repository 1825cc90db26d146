// SPDX-License-Identifier: GPL-2.0-only
// Summarizes a trace: calls and bytes of each kind, sizes, traffic between ranks, and each rank's
// operations in a line of text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

struct TraceSummary {
  struct Kind {
    uint64_t calls = 0;  // of all ranks
    uint64_t bytes = 0;  // of all ranks; a call's as OperationBytes counts them
    uint64_t smallest = UINT64_MAX;
    uint64_t largest = 0;
    std::array<uint64_t, 64> by_size{};  // calls of 2^i bytes or more and less than 2^(i+1)
    int64_t gap_ps = 0;                  // before its calls, summed
  };
  std::string origin;
  uint32_t ranks = 0;
  uint64_t communicators = 0;
  uint64_t programs = 0;  // that differ
  uint64_t iterations = 0;
  std::array<Kind, kCollectiveKindCount> kinds{};  // by CollectiveKind
  // Bytes that ranks send one another in Send, AllToAll, Gather and Scatter, the kinds whose pairs
  // the trace determines, by blocks of `ranks_per_block` ranks: the row is the sender's, the column
  // the receiver's. Square, or empty.
  uint32_t ranks_per_block = 1;
  std::vector<std::vector<uint64_t>> matrix;
};

inline constexpr uint32_t kMatrixBlocksMax = 16;

TraceSummary SummarizeTrace(const Trace& trace);
// Returns one fact a line, tables, and for the first `ranks_shown` ranks a line of letters, one for
// each of the first operations.
std::string SummaryText(const Trace& trace, const TraceSummary& summary, uint32_t ranks_shown);
std::string SummaryJson(const TraceSummary& summary);

}  // namespace railyard
