// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/model/layered_model.h"
#include "workloads/plans/model/model_config.h"

namespace railyard {

// Reads the railyard.protos.Model at `cursor`. Returns nullopt after an error.
std::optional<ModelConfig> LoadModel(const ProtoCursor& cursor, Diagnostics& diagnostics);

// Loads a model whose preset is not a transformer; returns nullopt if it is one. Fields that only
// transformers have are errors.
std::optional<LayeredModel> LoadLayeredModel(const ProtoCursor& cursor, Diagnostics& diagnostics);

}  // namespace railyard
