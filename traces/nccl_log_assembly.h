// SPDX-License-Identifier: GPL-2.0-only
// Last pass of the log reader: the k-th collective call of a communicator is matched over its
// ranks, unequal ends are cut, missing ranks are refused or reconstructed, and what is left becomes
// the trace.
//
// Where a rank's calls on a communicator end before those of others (a log that was cut off), the
// calls beyond its last are dropped on every rank: a prefix all ranks agree on can be replayed, and
// the report lists the rest. Where calls differ at their beginning (a log that starts in the
// middle) and the opCounts of every rank rise from call to call, the calls with opCounts that all
// ranks have are kept; any other difference is an error.
//
// A missing rank is given the program of the lowest rank the log holds, on its own communicators;
// peers keep their distance (peer - rank mod size). That is only done where all ranks present made
// the same calls on communicators of the same family.
#pragma once

#include <optional>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/import_report.h"
#include "traces/nccl_log_calls.h"
#include "traces/nccl_log_placement.h"
#include "traces/nccl_log_reader.h"
#include "traces/trace.h"

namespace railyard {

// Every call of `logged` ends up imported or dropped in `report`. nullopt after an error, or if no
// call is left, which is an error as well.
std::optional<Trace> AssembleTrace(LoggedCalls& logged, Placement& placement,
                                   const NcclLogOptions& options, ImportReport& report,
                                   Diagnostics& diagnostics);

}  // namespace railyard
