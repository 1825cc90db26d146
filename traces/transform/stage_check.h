// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"
#include "traces/transform/parallel_groups.h"

namespace railyard {

// Checks that the programs of the stages do not depend on their number: messages go to the next or
// the previous stage only, and all stages send the same sizes; in each iteration all forward passes
// (to the next) are before the first backward pass, as in GPipe, or there are none; other calls
// between stages are of all stages, or of the first and the last. Returns false with an error at
// the first operation or rank that violates this.
bool CheckStages(const Trace& trace, const ParallelGroups& groups, const std::string& file,
                 Diagnostics& diagnostics);

}  // namespace railyard
