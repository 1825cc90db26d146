// SPDX-License-Identifier: GPL-2.0-only
// Synthesizes inference on all ranks: data-parallel replicas of tensor- and pipeline-parallel
// ranks. Experts may be divided over the replicas. With disaggregation, a tensor group for prefill,
// whose ranks follow all others, sends keys and values to the decoding ranks.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Returns an upper bound on the number of operations, which is exact for plans with tensor
// parallelism only.
uint64_t InferenceOperationCount(const Plan& plan);
// Returns the trace. Precondition: the plan's job is an Inference.
Trace SynthesizeInference(const Plan& plan);

}  // namespace railyard
