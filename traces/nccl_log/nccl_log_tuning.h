// SPDX-License-Identifier: GPL-2.0-only
// Gives calls the algorithm and protocol that NCCL's TUNING lines state. Rank 0 of a communicator
// prints one per operation, without saying which: it belongs to the first call before it of the
// same kind and size in that process that has none yet. Where communicators of one process compete
// for a line, their calls stay unstated.
#pragma once

#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/trace/import_report.h"

namespace railyard {

void AttachTuning(LoggedCalls& logged, const Placement& placement, ImportReport& report);

}  // namespace railyard
