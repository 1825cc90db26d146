// SPDX-License-Identifier: GPL-2.0-only
// Last pass of the log reader: what ranks did together is matched over them, unequal ends are cut
// (nccl_log_collectives.h, nccl_log_point_to_point.h), missing ranks are refused or reconstructed
// (nccl_log_missing_ranks.h), and what is left becomes the trace.
#pragma once

#include <optional>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Every call of `logged` ends up imported or dropped in `report`. nullopt after an error, or if no
// call is left, which is an error as well.
std::optional<Trace> AssembleTrace(LoggedCalls& logged, Placement& placement,
                                   const NcclLogOptions& options, ImportReport& report,
                                   Diagnostics& diagnostics);

}  // namespace railyard
