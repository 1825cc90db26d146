// SPDX-License-Identifier: GPL-2.0-only
// Names and locates a trace's calls in findings.
#pragma once

#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Returns the line at which a call was logged; if the line is not known, the trace file, and
// without one the file from which the call came.
SourceLocation PlaceOf(const Trace& trace, uint32_t source_file, uint32_t source_line);
// Returns e.g. "AllReduce of 1024 Float32", "Send of 16 Int8 to rank 3".
std::string DescribeCall(const TraceOperation& operation);

}  // namespace railyard
