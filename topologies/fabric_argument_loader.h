// SPDX-License-Identifier: GPL-2.0-only
// A fabric named on the command line.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// `argument` is a preset, or a file of any FabricFileFormat. nullopt after an error; every mistake
// is a finding.
std::optional<FabricGraph> LoadFabricArgument(const std::string& argument,
                                              Diagnostics& diagnostics);

}  // namespace railyard
