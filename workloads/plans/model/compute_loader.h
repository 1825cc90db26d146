// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/model/compute_cost.h"

namespace railyard {

// Reads the railyard.protos.Compute at `cursor`. The accelerator must support `precision`;
// `is_training` determines which given times have an effect. The result must not be used after
// errors.
ComputeSettings LoadCompute(const ProtoCursor& cursor, Precision precision, bool is_training,
                            Diagnostics& diagnostics);

}  // namespace railyard
