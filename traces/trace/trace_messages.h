// SPDX-License-Identifier: GPL-2.0-only
// Operations and loops as messages of trace.proto. Functions that read return an error message, or
// an empty string; whether values are sound is for CheckTrace to say.
#pragma once

#include <string>
#include <vector>

#include "traces/trace/trace.h"
#include "traces/trace/trace.pb.h"
#include "traces/trace/trace_loops.h"

namespace railyard {

void OperationToProto(const TraceOperation& operation, protos::TraceOperation* out);
std::string OperationFromProto(const protos::TraceOperation& in, TraceOperation& operation);

void LoopToProto(const std::vector<TraceOperation>& program, const ProgramLoop& loop,
                 protos::TraceLoop* out);
// Checks the numbers of operations and iterations, and of the loop's columns.
std::string CheckLoopSize(const protos::TraceLoop& in);
// Appends all iterations. Precondition: CheckLoopSize finds nothing.
std::string AppendLoop(const protos::TraceLoop& in, std::vector<TraceOperation>& program);

}  // namespace railyard
