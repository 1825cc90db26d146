// SPDX-License-Identifier: GPL-2.0-only
// Refuses or reconstructs the ranks that the log lacks.
//
// A missing rank is given the program of the lowest rank in the log, on its own communicators;
// peers keep their distance (peer - rank mod size). This is done only if all ranks present made the
// same calls on communicators of the same family.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/nccl_log/nccl_log_trace_builder.h"
#include "traces/trace/import_report.h"

namespace railyard {

// Returns false after an error: a rank of the job has no process, or a rank of a communicator that
// is used for collectives has no call on it.
bool RefuseMissingRanks(const PlacedCalls& calls, Diagnostics& diagnostics);

// Checks that the ranks present have equal Send/Recv groups up to the shift, because missing ranks
// repeat these groups. `group_of` is by call; 0 means no group.
void CheckPointToPointAlike(const PlacedCalls& calls, const std::vector<uint32_t>& group_of,
                            Diagnostics& diagnostics);

// Drops the Sends and Recvs on communicators of a family on which some would have no counterpart if
// every rank repeated them, as those of one stage of a pipeline. Precondition: the ranks present
// have equal ones.
void DropUnansweredMessages(PlacedCalls& calls);

// Adds the operations of the missing ranks to `trace`, and the communicators that only they have to
// `placement`, which is that of `calls`. Precondition: some rank has calls.
void ReconstructMissingRanks(const PlacedCalls& calls, Placement& placement, LogTraceBuilder& trace,
                             ImportReport& report, Diagnostics& diagnostics);

}  // namespace railyard
