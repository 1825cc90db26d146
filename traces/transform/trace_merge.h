// SPDX-License-Identifier: GPL-2.0-only
// Merges jobs into one trace, in which they run concurrently, and removes names from traces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Returns a trace with the ranks of the first trace, then those of the second, and so on;
// communicators are named "NUMBER/NAME". Iterations are kept if all jobs have the same number.
// Returns nullopt if there are too many ranks or communicators (trace_check.h), which is an error
// at `file`.
std::optional<Trace> MergeTraces(const std::vector<Trace>& traces, const std::string& file,
                                 Diagnostics& diagnostics);

// Replaces the names of files and communicators by numbers and removes line numbers; the operations
// of ranks stay.
Trace AnonymizeTrace(Trace trace);

}  // namespace railyard
