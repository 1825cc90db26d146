// SPDX-License-Identifier: GPL-2.0-only
// Computes the costs of the kernels that exchange the tokens of experts.
// docs/model/expert-kernels.md describes the model and its sources.
#pragma once

#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/gpu_costs.h"

namespace railyard {

// Returns the costs of a kernel's hops. Values that the scenario states (`gpu`) replace those here.
// Precondition: `call` names a kernel.
StepCosts ExpertCosts(const GpuCosts& gpu, const CommunicatorLayout& layout,
                      const ExpertCall& call);

}  // namespace railyard
