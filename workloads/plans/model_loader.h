// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>

#include "simulator/diagnostics/text_proto.h"
#include "workloads/plans/model_config.h"

namespace railyard {

// `cursor` is on a railyard.protos.Model. nullopt after an error.
std::optional<ModelConfig> LoadModel(const ProtoCursor& cursor, Diagnostics& diagnostics);

}  // namespace railyard
