// SPDX-License-Identifier: GPL-2.0-only
// Synthesizes training on all ranks: every stage's program with the communicators of each of its
// ranks.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Returns the number of operations. For a plan so large that counting would take long, it is some
// number above kPlanOperationsMax; with expert parallelism, whose calls are known only when tokens
// are drawn, it is an upper bound.
uint64_t TrainingOperationCount(const Plan& plan);
// Returns the trace. Precondition: the plan's job is a Training.
Trace SynthesizeTraining(const Plan& plan);

}  // namespace railyard
