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
    uint64_t bytes = 0;  // of all ranks, counted by OperationBytes()
    uint64_t smallest = UINT64_MAX;
    uint64_t largest = 0;
    std::array<uint64_t, 64> by_size{};  // calls of at least 2^i and less than 2^(i+1) bytes
    // Sums the gaps before its calls, which for many ranks are beyond 64 bits.
    unsigned __int128 gap_ps = 0;
  };
  struct Communicator {
    std::string name;
    uint64_t ranks = 0;
    uint64_t calls = 0;  // of all of its ranks
  };
  std::string origin;
  uint32_t ranks = 0;
  std::vector<Communicator> communicators;  // in the trace's order
  uint64_t programs = 0;                    // different ones
  uint64_t iterations = 0;
  std::array<Kind, kCollectiveKindCount> kinds{};  // by CollectiveKind
  // The bytes between ranks in Send, AllToAll, Gather and Scatter, the kinds whose pairs the trace
  // determines, by blocks of `ranks_per_block` ranks: rows are senders, columns receivers. The
  // matrix is square or empty.
  uint32_t ranks_per_block = 1;
  std::vector<std::vector<uint64_t>> matrix;
};

inline constexpr uint32_t kMatrixBlocksMax = 16;

TraceSummary SummarizeTrace(const Trace& trace);
// Returns the summary as text: one fact per line, then tables (that of communicators has the first
// communicators only), then for each of the first `ranks_shown` ranks a line with one letter for
// each of its first operations.
std::string SummaryText(const Trace& trace, const TraceSummary& summary, uint32_t ranks_shown);
std::string SummaryJson(const TraceSummary& summary);

}  // namespace railyard
