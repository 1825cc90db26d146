// SPDX-License-Identifier: GPL-2.0-only
// Turns a plan into the operations of every rank.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Returns the number of operations in all programs of a plan's trace together; equal ranks share
// one program.
uint64_t OperationCount(const Plan& plan);

// Returns the trace of a plan. Precondition: LoadPlan() returned the plan.
Trace Synthesize(const Plan& plan);

}  // namespace railyard
