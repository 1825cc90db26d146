// SPDX-License-Identifier: GPL-2.0-only
// Makes named fabrics: generators with every parameter chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct Preset {
  std::string name;
  std::string description;  // one line
  std::string source;       // of its shape
};
const std::vector<Preset>& Presets();
// Returns the fabric of that name, or nullopt if there is none.
std::optional<FabricGraph> MakePreset(const std::string& name);

}  // namespace railyard
