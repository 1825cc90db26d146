// SPDX-License-Identifier: GPL-2.0-only
// Jobs side by side in one trace, and traces without names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// The ranks of the first trace, then those of the second, and so on; communicators are named
// "NUMBER/NAME". Iterations are kept where all jobs have equally many. nullopt where they are too
// many (trace_check.h), which is an error at `file`.
std::optional<Trace> MergeTraces(const std::vector<Trace>& traces, const std::string& file,
                                 Diagnostics& diagnostics);

// Without names of files and communicators, which become numbers, and without lines: what is left
// is what the ranks do.
Trace AnonymizeTrace(Trace trace);

}  // namespace railyard
