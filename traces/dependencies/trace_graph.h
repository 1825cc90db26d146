// SPDX-License-Identifier: GPL-2.0-only
// The way back: a trace as a graph, for formats that are graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/dependencies/dependency_graph.h"
#include "traces/trace/trace.h"

namespace railyard {

struct TraceGraphOptions {
  // Collectives become their messages: rings for AllReduce, AllGather and ReduceScatter, a chain
  // from or to the root for Broadcast and Reduce, one message a pair for the others.
  bool expand_collectives = false;
  int64_t time_unit_ps = 1;  // that the format has: gaps are rounded to it
};
inline constexpr uint64_t kTraceGraphOperationsMax = 50'000'000;

// Operations in the order of the trace, gaps as computation before them. An operation waits for the
// one before it on its stream, the one before it on its communicator, and what it is said to wait
// for, as far as none of these implies another. Messages of a pair on one communicator have one
// tag, and follow one another. nullopt where that is more than kTraceGraphOperationsMax, which is
// an error at `file`.
std::optional<DependencyGraph> GraphOfTrace(const Trace& trace, const TraceGraphOptions& options,
                                            const std::string& file, Diagnostics& diagnostics);

}  // namespace railyard
