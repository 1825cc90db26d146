// SPDX-License-Identifier: GPL-2.0-only
// A fabric named on the command line.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// `argument` is a preset, or a file: GraphML (*.graphml, *.xml), else protobuf text, a
// railyard.protos.Topology if the first field in it is one of its own, else a
// railyard.protos.Fabric. nullopt after an error; every mistake is a finding.
std::optional<FabricGraph> LoadFabricArgument(const std::string& argument,
                                              Diagnostics& diagnostics);

}  // namespace railyard
