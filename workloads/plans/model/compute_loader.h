// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/model/compute_cost.h"

namespace railyard {

// `cursor` is on a railyard.protos.Compute; `precision` is what the accelerator must compute in,
// `is_training` says which given times have an effect. After errors the outcome is not to be used.
ComputeSettings LoadCompute(const ProtoCursor& cursor, Precision precision, bool is_training,
                            Diagnostics& diagnostics);

}  // namespace railyard
