// SPDX-License-Identifier: GPL-2.0-only
// Splits the time that a collective took longer than in the fault-free run by cause.
#pragma once

#include <cstdint>

#include "analysis/result/run_result.h"
#include "simulator/execution/lanes/critical_path.h"

namespace railyard {

// Computes the split from the times of its critical path by cause in both runs; the parts add up to
// `added_ps`.
AddedTime SplitAddedTime(const PathTimes& spent_ps, const PathTimes& baseline_spent_ps,
                         int64_t added_ps);

}  // namespace railyard
