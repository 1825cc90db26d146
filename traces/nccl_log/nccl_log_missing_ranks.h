// SPDX-License-Identifier: GPL-2.0-only
// What is done about ranks the log lacks: they are refused, or reconstructed.
//
// A missing rank is given the program of the lowest rank the log holds, on its own communicators;
// peers keep their distance (peer - rank mod size). That is only done where all ranks present made
// the same calls on communicators of the same family.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/nccl_log/nccl_log_trace_builder.h"
#include "traces/trace/import_report.h"

namespace railyard {

// False after an error: a rank of the job has no process, or one of a communicator that is used for
// collectives has no call on it.
bool RefuseMissingRanks(const PlacedCalls& calls, Diagnostics& diagnostics);

// Missing ranks repeat the groups of those present, so these must be alike up to the shift.
// `group_of` is by call, 0: none.
void CheckPointToPointAlike(const PlacedCalls& calls, const std::vector<uint32_t>& group_of,
                            Diagnostics& diagnostics);

// Adds the operations of the missing ranks to `trace`, and to `placement`, which is that of
// `calls`, the communicators that only they have. Precondition: some rank has calls.
void ReconstructMissingRanks(const PlacedCalls& calls, Placement& placement, LogTraceBuilder& trace,
                             ImportReport& report, Diagnostics& diagnostics);

}  // namespace railyard
