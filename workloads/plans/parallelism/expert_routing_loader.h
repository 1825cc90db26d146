// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Reads the railyard.protos.ExpertRouting at `cursor`. The result must not be used after errors.
// Precondition: `model` has experts.
ExpertRouting LoadRouting(const ProtoCursor& cursor, const ModelConfig& model, bool is_training,
                          Diagnostics& diagnostics);

}  // namespace railyard
