// SPDX-License-Identifier: GPL-2.0-only
// Loads the fields `training` and `inference` of a plan.
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// These read the railyard.protos.Inference or Training at `cursor`. The result must not be used
// after errors. `plan` may have errors in its model and parallelism.
Inference LoadInference(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);
Training LoadTraining(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);

}  // namespace railyard
