// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on a railyard.protos.Parallelism. After errors the outcome is not to be used.
Parallelism LoadParallelism(const ProtoCursor& cursor, Diagnostics& diagnostics);

// Whether the parts divide what they divide of the model. `cursor` as above; `model` is whole.
void CheckParallelism(const ProtoCursor& cursor, const Parallelism& parallelism,
                      const ModelConfig& model, Diagnostics& diagnostics);

}  // namespace railyard
