// SPDX-License-Identifier: GPL-2.0-only
// Makes a trace from a job that is a graph: it matches messages, orders operations and assigns them
// to streams.
#pragma once

#include <optional>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/dependencies/dependency_graph.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Messages become Send and Recv on a communicator of their two ranks, one communicator per
// direction and tag (one for all tags of a direction with more than 16), in the same order at both
// ends. Computation becomes a gap or a separate operation. If the job would deadlock because a Send
// ends with its message, operations that depend on a Send do not wait for it, and the report says
// so. Calls without a partner, and collectives that the ranks of a communicator do
// not make alike, are dropped, all others counted as imported; report.files are the
// graph's source_files. Returns nullopt after an error (a cycle of dependencies, sizes beyond
// trace_check.h), or without any call. Precondition: waits_for, peers and communicators are in
// range, no operation depends on itself, no peer is the rank itself.
std::optional<Trace> TraceOfGraph(DependencyGraph graph, ImportReport& report,
                                  Diagnostics& diagnostics);

}  // namespace railyard
