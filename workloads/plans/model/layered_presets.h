// SPDX-License-Identifier: GPL-2.0-only
// Lists named models that are not transformers.
#pragma once

#include <string_view>
#include <vector>

#include "workloads/plans/model/layered_model.h"

namespace railyard {

struct LayeredPreset {
  std::string_view name;
  std::string_view description;  // one line
  std::string_view source;       // of its shape
  double published_parameters = 0;
  double published_flops = 0;  // of one sample's forward pass, 2 per multiply-add
  std::string_view published_source;
  LayeredModel model;
};
const std::vector<LayeredPreset>& LayeredPresets();
// Returns the preset of that name, or nullptr.
const LayeredPreset* FindLayeredPreset(std::string_view name);

}  // namespace railyard
