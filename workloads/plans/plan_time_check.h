// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on the plan, which has been read without errors.
// An error at `compute` where a part of the model takes kComputePsMax on one GPU, beyond which
// times are cut, or a pass over it kPlanPsMax.
void CheckPassTime(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);
// An error at the job's `iterations` or `output_tokens` where all passes may take kPlanPsMax.
void CheckJobTime(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);

}  // namespace railyard
