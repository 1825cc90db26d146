// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on a railyard.protos.Parallelism. After errors the outcome is not to be used.
Parallelism LoadParallelism(const ProtoCursor& cursor, Diagnostics& diagnostics);

// Whether the parts divide what they divide of the model. `cursor` as above; `model` is whole.
void CheckParallelism(const ProtoCursor& cursor, const Parallelism& parallelism,
                      const ModelConfig& model, Diagnostics& diagnostics);

// Why so many GPUs cannot share the model's layers ("does not divide model.heads 64"); empty if
// they can. Key/value heads may also be held by several of them. `has_whole_experts`: experts are
// not divided.
std::string WhyNotTensor(uint32_t tensor, const ModelConfig& model, bool has_whole_experts);

}  // namespace railyard
