// SPDX-License-Identifier: GPL-2.0-only
// Matches the k-th collective call of a communicator over its ranks.
//
// If one rank's calls on a communicator end before those of others (a log that was cut off), the
// calls beyond its last are dropped on every rank; the prefix on which all ranks agree can be
// replayed, and the report lists the rest. If calls differ at their beginning (a log that starts in
// the middle) and the opCounts of every rank increase from call to call, the calls whose opCounts
// all ranks have are kept. Any other difference is an error.
#pragma once

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/trace/import_report.h"

namespace railyard {

// Matches the calls. The algorithm and protocol that one rank's log states apply to the same call
// on all ranks.
void MatchCollectives(PlacedCalls& calls, ImportReport& report, Diagnostics& diagnostics);

}  // namespace railyard
