// SPDX-License-Identifier: GPL-2.0-only
// Converts operations and loops to and from messages of trace.proto. Functions that read return an
// error message, or an empty string; the values themselves are checked by CheckTrace().
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
// Appends all iterations. Precondition: CheckLoopSize() returns no error.
std::string AppendLoop(const protos::TraceLoop& in, std::vector<TraceOperation>& program);

}  // namespace railyard
