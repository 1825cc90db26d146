// SPDX-License-Identifier: GPL-2.0-only
// Matches Send and Recv calls over the ranks, and tells which of a rank's are one group.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/trace/import_report.h"

namespace railyard {

// The k-th send from a to b meets the k-th receive of b from a; what has no counterpart because
// a log ends early is dropped. Peers the log does not hold are not judged.
void CutPointToPoint(PlacedCalls& calls);

// The group of each call among those of its rank; 0: none. Send and Recv lines in a row with the
// same communicator, stream and opCount are one group. Where the opCount of a communicator never
// changes it cannot tell groups apart (NCCL from 2.27 on within one server); there a group also
// ends when its first call comes again while it has as many sends as receives.
std::vector<uint32_t> GroupPointToPoint(const PlacedCalls& calls, ImportReport& report);

}  // namespace railyard
