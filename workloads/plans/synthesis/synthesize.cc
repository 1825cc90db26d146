// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/synthesis/synthesize.h"

#include "workloads/plans/inference/inference_plan.h"
#include "workloads/plans/training/layered_plan.h"
#include "workloads/plans/training/training_plan.h"

namespace railyard {

uint64_t OperationCount(const Plan& plan) {
  if (plan.layered) return LayeredOperationCount(plan);
  return std::holds_alternative<Inference>(plan.job) ? InferenceOperationCount(plan)
                                                     : TrainingOperationCount(plan);
}

Trace Synthesize(const Plan& plan) {
  if (plan.layered) return SynthesizeLayered(plan);
  return std::holds_alternative<Inference>(plan.job) ? SynthesizeInference(plan)
                                                     : SynthesizeTraining(plan);
}

}  // namespace railyard
