// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Reports an error at `compute` if a part of the model takes kComputePsMax on one GPU, above which
// times are cut off, or if a pass over the model takes kPlanPsMax. `cursor` is on the plan, which
// has been read without errors.
void CheckPassTime(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);
// Reports an error at the job's `iterations` or `output_tokens` if all passes together may take
// kPlanPsMax.
void CheckJobTime(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);

}  // namespace railyard
