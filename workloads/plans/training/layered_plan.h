// SPDX-License-Identifier: GPL-2.0-only
// Synthesizes data-parallel training of models that are not transformers. Every rank computes its
// samples, and GradientBuckets reduces gradients. Embedding tables, if the model has any, are
// distributed over the ranks undivided, one after the other (Naumov et al., arXiv 1906.00091,
// section 3.1). A rank looks up the samples of all ranks in its tables; an AllToAllv sends the rows
// to the samples' ranks while these compute the bottom, and another sends the gradients back while
// they compute the bottom's backward pass.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Returns the number of operations. Precondition of all these functions: the plan's model is a
// LayeredModel.
uint64_t LayeredOperationCount(const Plan& plan);
Trace SynthesizeLayered(const Plan& plan);

// Returns the embedding tables of the rank at that place of the data group.
uint32_t TablesOf(const Plan& plan, uint32_t place);
// Returns the bytes of the rows that this rank looks up for a micro-batch of all ranks.
// Precondition: the model has tables.
double LookUpBytes(const Plan& plan, uint32_t place);

}  // namespace railyard
