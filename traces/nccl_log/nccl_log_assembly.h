// SPDX-License-Identifier: GPL-2.0-only
// Is the last pass of the log reader. It matches the operations of different ranks, cuts ends of
// unequal length (nccl_log_collectives.h, nccl_log_point_to_point.h), refuses or reconstructs
// missing ranks (nccl_log_missing_ranks.h), and makes the trace of the remaining calls.
#pragma once

#include <optional>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Every call of `logged` ends up imported or dropped in `report`. Returns nullopt after an error;
// having no call left is also an error.
std::optional<Trace> AssembleTrace(LoggedCalls& logged, Placement& placement,
                                   const NcclLogOptions& options, ImportReport& report,
                                   Diagnostics& diagnostics);

}  // namespace railyard
