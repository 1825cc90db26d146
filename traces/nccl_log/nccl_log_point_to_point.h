// SPDX-License-Identifier: GPL-2.0-only
// Matches Send and Recv calls over the ranks, and finds which calls of a rank form one group.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/trace/import_report.h"

namespace railyard {

// Matches the k-th send from a to b with the k-th receive of b from a, and drops calls without a
// counterpart because a log ends early. Calls whose peer is not in the log are kept.
void CutPointToPoint(PlacedCalls& calls);

// Returns the group of each call among those of its rank; 0 means no group. Consecutive Send and
// Recv lines with the same communicator, stream and opCount are one group. If the opCount of a
// communicator never changes, it cannot separate groups (NCCL from 2.27 on within one server); a
// group then also ends if its first call occurs again while it has as many sends as receives.
std::vector<uint32_t> GroupPointToPoint(const PlacedCalls& calls, ImportReport& report);

}  // namespace railyard
