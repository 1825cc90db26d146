// SPDX-License-Identifier: GPL-2.0-only
// Splits the time of one rank in a run by cause, from the starts and ends of its calls.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/replay/engine/replay_engine.h"
#include "workloads/job/job.h"

namespace railyard {

// Returns the parts by iteration of the rank's program (Job::iteration_begins). The rank's own
// stream, 0, is followed from the beginning to its last operation; each interval belongs to one
// part, so that the parts add up to that time. `replay` must have kept the calls of `rank`. The
// result is empty unless they have all ended.
std::vector<TimeBreakdown> BreakdownOf(const Job& job, const ReplayEngine& replay, GlobalRank rank);

}  // namespace railyard
