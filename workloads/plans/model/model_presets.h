// SPDX-License-Identifier: GPL-2.0-only
// Lists named transformers.
#pragma once

#include <string_view>
#include <vector>

#include "workloads/plans/model/model_config.h"

namespace railyard {

struct ModelPreset {
  std::string_view name;
  std::string_view description;  // one line
  std::string_view source;       // of its shape
  double published_parameters = 0;
  std::string_view parameters_source;
  ModelConfig config;
};
const std::vector<ModelPreset>& ModelPresets();
// Returns the preset of that name, or nullptr.
const ModelPreset* FindModelPreset(std::string_view name);

}  // namespace railyard
