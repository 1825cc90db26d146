// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on a railyard.protos.ExpertRouting, and `model` has experts. The result must not be
// used after errors.
ExpertRouting LoadRouting(const ProtoCursor& cursor, const ModelConfig& model, bool is_training,
                          Diagnostics& diagnostics);

}  // namespace railyard
