// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/synthesize.h"

#include "workloads/plans/inference_plan.h"

namespace railyard {

uint64_t OperationCount(const Plan& plan) { return InferenceOperationCount(plan); }

Trace Synthesize(const Plan& plan) { return SynthesizeInference(plan); }

}  // namespace railyard
