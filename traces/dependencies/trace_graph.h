// SPDX-License-Identifier: GPL-2.0-only
// Converts a trace to a graph, for formats that are graphs. It is the inverse of
// dependency_trace.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/dependencies/dependency_graph.h"
#include "traces/trace/trace.h"

namespace railyard {

struct TraceGraphOptions {
  // Expands collectives into messages: rings for AllReduce, AllGather and ReduceScatter, a chain
  // from or to the root for Broadcast and Reduce, one message per pair for the others.
  bool expand_collectives = false;
  int64_t time_unit_ps = 1;  // of the format; gaps are rounded to it
};
inline constexpr uint64_t kTraceGraphOperationsMax = 50'000'000;

// Returns operations in the order of the trace, with gaps as computation before them. An operation
// depends on the previous operation on its stream, on the previous one on its communicator, and on
// its stated dependency, unless another dependency implies it. Messages of a pair on one
// communicator have one tag and are sent one after the other. Returns nullopt if there are more
// than kTraceGraphOperationsMax operations, which is an error at `file`.
std::optional<DependencyGraph> GraphOfTrace(const Trace& trace, const TraceGraphOptions& options,
                                            const std::string& file, Diagnostics& diagnostics);

}  // namespace railyard
