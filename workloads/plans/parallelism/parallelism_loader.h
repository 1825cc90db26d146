// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Reads the railyard.protos.Parallelism at `cursor`. The result must not be used after errors.
Parallelism LoadParallelism(const ProtoCursor& cursor, Diagnostics& diagnostics);

// Checks that the parallel degrees divide the parts of the model to which they apply. `cursor` is
// as above; `model` was loaded without errors.
void CheckParallelism(const ProtoCursor& cursor, const Parallelism& parallelism,
                      const ModelConfig& model, Diagnostics& diagnostics);

// Returns why `tensor` GPUs cannot share the model's layers ("does not divide model.heads 64");
// empty if they can. Several GPUs may hold the same key/value head. With `has_whole_experts`,
// experts are not divided.
std::string WhyNotTensor(uint32_t tensor, const ModelConfig& model, bool has_whole_experts);

}  // namespace railyard
