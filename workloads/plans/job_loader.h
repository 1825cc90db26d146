// SPDX-License-Identifier: GPL-2.0-only
// What is done with the model: the field `inference` of a plan.
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on a railyard.protos.Inference. After errors the outcome is not to be
// used. `model` may be that of a plan with errors.
Inference LoadInference(const ProtoCursor& cursor, const ModelConfig& model,
                        Diagnostics& diagnostics);

}  // namespace railyard
