// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/model/layered_model.h"
#include "workloads/plans/model/model_config.h"

namespace railyard {

// `cursor` is on a railyard.protos.Model. nullopt after an error.
std::optional<ModelConfig> LoadModel(const ProtoCursor& cursor, Diagnostics& diagnostics);

// The same where the preset is no transformer; nullopt if it is not such. Errors are for fields
// that transformers have.
std::optional<LayeredModel> LoadLayeredModel(const ProtoCursor& cursor, Diagnostics& diagnostics);

}  // namespace railyard
