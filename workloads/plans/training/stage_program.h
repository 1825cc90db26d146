// SPDX-License-Identifier: GPL-2.0-only
// What every rank of a pipeline stage does in training; ranks of a stage differ in the
// communicators only. Communicators are numbered by StageGroup here.
//
// Tensor and context parallel: workloads/plans/parallelism/activation_calls.h. Pipeline: a
// micro-batch's activations and gradients go to the next and previous stage while the stage works
// on; they are received from when the task before the one that needs them begins. Expert parallel:
// tokens go to their experts and back in the forward and in the backward pass
// (workloads/plans/parallelism/expert_calls.h). Data parallel (Rajbhandari et al., arXiv
// 1910.02054): docs/workloads.md.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/plan.h"
#include "workloads/plans/training/stage_exchanges.h"

namespace railyard {

// Precondition: the plan's job is a Training, stage < its pipeline. With expert parallelism: of the
// rank of that place in the group of `exchanges`, else nullptr.
std::vector<TraceOperation> StageProgram(const Plan& plan, uint32_t stage,
                                         const StageExchanges* exchanges = nullptr,
                                         uint32_t expert_place = 0);
// Returns, with expert parallelism, the layer of the model (from 0) of each AllToAllv of an
// iteration, in the order of TraceOperation::all_to_all. The list is the same for all
// expert-parallel groups of the stage, and in every iteration.
std::vector<uint32_t> ExchangedLayers(const Plan& plan, uint32_t stage);
// No fewer than StageProgram's.
uint64_t StageOperationsBound(const Plan& plan);

}  // namespace railyard
