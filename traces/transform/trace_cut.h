// SPDX-License-Identifier: GPL-2.0-only
// Leaves parts of a trace out, so that what is left still fits together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Numbers from first to last.
struct NumberRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  bool Contains(uint64_t number) const { return number >= first && number <= last; }
};

struct TraceCut {
  // Ranks that stay, in order, and become ranks 0, 1, ...; empty: all. Calls of a communicator are
  // then those of its ranks that stay, with the sizes they had; a call of one rank that is left,
  // and messages from and to ranks that go, become computation of no length.
  std::vector<uint32_t> ranks = {};
  // Names of communicators whose calls stay; others become computation of no length. Empty: all.
  std::vector<std::string> communicators = {};
  NumberRange iterations = {};  // that stay
  // Calls that stay, counted on each communicator, messages by pair and direction: the same for
  // every rank of it.
  NumberRange calls = {};
};

// nullopt after an error: no such rank or communicator, a root that goes, or nothing that is left.
// `file` names the trace in findings.
std::optional<Trace> CutTrace(const Trace& trace, const TraceCut& cut, const std::string& file,
                              Diagnostics& diagnostics);

}  // namespace railyard
