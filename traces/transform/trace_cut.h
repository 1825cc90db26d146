// SPDX-License-Identifier: GPL-2.0-only
// Removes parts of a trace such that the rest is still consistent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Numbers from first to last, both included.
struct NumberRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  bool Contains(uint64_t number) const { return number >= first && number <= last; }
};

struct TraceCut {
  // Ranks to keep, in order; they become ranks 0, 1, ...; empty: all. Calls of a communicator then
  // have only those of its ranks that are kept, with unchanged sizes. A call with a single rank
  // left, and messages from and to removed ranks, become computation of length 0.
  std::vector<uint32_t> ranks = {};
  // Names of communicators whose calls are kept; others become computation of length 0. Empty: all.
  std::vector<std::string> communicators = {};
  NumberRange iterations = {};  // that stay
  // Calls to keep, counted on each communicator, messages by pair and direction, so that the range
  // is the same for all of its ranks.
  NumberRange calls = {};
};

// Returns nullopt after an error: a rank or communicator does not exist, a root is removed, or
// nothing is left. `file` names the trace in findings.
std::optional<Trace> CutTrace(const Trace& trace, const TraceCut& cut, const std::string& file,
                              Diagnostics& diagnostics);

}  // namespace railyard
