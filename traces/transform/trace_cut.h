// SPDX-License-Identifier: GPL-2.0-only
// Removes parts of a trace so that the rest is still consistent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Describes the numbers from first to last, both included.
struct NumberRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  bool Contains(uint64_t number) const { return number >= first && number <= last; }
};

struct TraceCut {
  // The ranks to keep, in order, or empty for all; they become ranks 0, 1 and so on. Communicators
  // then have only the ranks that are kept, and calls keep their sizes. A call with a single rank
  // left, and messages from and to removed ranks, become computation of length 0.
  std::vector<GlobalRank> ranks = {};
  // The names of communicators whose calls are kept, or empty for all; other calls become
  // computation of length 0.
  std::vector<std::string> communicators = {};
  NumberRange iterations = {};  // to keep
  // The calls to keep, counted on each communicator (messages by pair and direction), so that the
  // range is the same for all of its ranks.
  NumberRange calls = {};
};

// Returns nullopt after an error: a rank or communicator does not exist, a root is removed, or
// nothing is left. `file` names the trace in findings.
std::optional<Trace> CutTrace(const Trace& trace, const TraceCut& cut, const std::string& file,
                              Diagnostics& diagnostics);

}  // namespace railyard
