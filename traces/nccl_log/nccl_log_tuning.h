// SPDX-License-Identifier: GPL-2.0-only
// Assigns the algorithm and protocol in NCCL's TUNING lines to calls. Rank 0 of a communicator
// prints one line per operation without naming it: the line belongs to the first earlier call of
// that process with the same kind and size that has no line yet. If communicators of one process
// compete for a line, their calls stay unstated.
#pragma once

#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/trace/import_report.h"

namespace railyard {

void AttachTuning(LoggedCalls& logged, const Placement& placement, ImportReport& report);

}  // namespace railyard
