// SPDX-License-Identifier: GPL-2.0-only
// Writes the operations of every rank of a pipeline stage in training; ranks of a stage differ in
// their communicators only, which are numbered by StageGroup here.
//
// Tensor and context parallel: workloads/plans/parallelism/activation_calls.h. Pipeline: a
// micro-batch's activations and gradients are sent to the next and previous stage while the stage
// continues; a receive begins with the task before that which needs it. Expert parallel: tokens are
// sent to their experts and back in the forward and in the backward pass
// (workloads/plans/parallelism/expert_calls.h). Data parallel (Rajbhandari et al., arXiv
// 1910.02054): docs/workloads.md.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/plan/plan.h"
#include "workloads/plans/training/stage_exchanges.h"

namespace railyard {

// Returns the program of a stage. With expert parallelism it is that of the rank at that place in
// the group of `exchanges`; without, `exchanges` is nullptr. Preconditions: the plan's job is a
// Training, and `stage` is below its pipeline degree.
std::vector<TraceOperation> StageProgram(const Plan& plan, uint32_t stage,
                                         const StageExchanges* exchanges = nullptr,
                                         uint32_t expert_place = 0);
// Returns, with expert parallelism, the layer of the model (from 0) of each AllToAllv of an
// iteration, in the order of TraceOperation::all_to_all. The list is the same for all
// expert-parallel groups of the stage, and in every iteration.
std::vector<uint32_t> ExchangedLayers(const Plan& plan, uint32_t stage);
// Returns an upper bound on the number of StageProgram's operations.
uint64_t StageOperationsBound(const Plan& plan);

}  // namespace railyard
