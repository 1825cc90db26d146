// SPDX-License-Identifier: GPL-2.0-only
// How findings about a trace's calls name them.
#pragma once

#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// The line a call was logged at; where no line is known, the trace file, and without one the file
// the call came from.
SourceLocation PlaceOf(const Trace& trace, uint32_t source_file, uint32_t source_line);
// "AllReduce of 1024 Float32", "Send of 16 Int8 to rank 3".
std::string DescribeCall(const TraceOperation& operation);

}  // namespace railyard
