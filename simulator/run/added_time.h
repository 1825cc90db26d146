// SPDX-License-Identifier: GPL-2.0-only
// What made a collective take longer than in the fault-free run.
#pragma once

#include <cstdint>

#include "analysis/result/run_result.h"
#include "simulator/execution/lanes/critical_path.h"

namespace railyard {

// From what the times of its critical path went to in either run; adds up to `added_ps`.
AddedTime SplitAddedTime(const PathTimes& spent_ps, const PathTimes& baseline_spent_ps,
                         int64_t added_ps);

}  // namespace railyard
