// SPDX-License-Identifier: GPL-2.0-only
// From what a scenario's `fabric { }` says to a checked FabricGraph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/text_proto.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// `fabric` is a cursor on a railyard.protos.Fabric. nullopt after an error.
std::optional<FabricGraph> LoadFabric(const ProtoCursor& fabric, Diagnostics& diagnostics);

struct Preset {
  std::string name;
  std::string description;  // one line
};
const std::vector<Preset>& Presets();
std::optional<FabricGraph> MakePreset(const std::string& name);

}  // namespace railyard
