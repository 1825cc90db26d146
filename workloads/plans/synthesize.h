// SPDX-License-Identifier: GPL-2.0-only
// From a plan to the operations of every rank.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/plans/plan.h"

namespace railyard {

// Operations that all programs of a plan's trace hold together; ranks that do the same share one.
uint64_t OperationCount(const Plan& plan);
// More take more memory than usual machines have.
inline constexpr uint64_t kPlanOperationsMax = 40'000'000;

// Precondition: LoadPlan returned it.
Trace Synthesize(const Plan& plan);

}  // namespace railyard
