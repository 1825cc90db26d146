// SPDX-License-Identifier: GPL-2.0-only
// What is done with the model: the fields `training` and `inference` of a plan.
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on a railyard.protos.Inference or Training. After errors the outcome is not to be
// used. Model and parallelism of `plan` may be those of a plan with errors.
Inference LoadInference(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);
Training LoadTraining(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics);

}  // namespace railyard
