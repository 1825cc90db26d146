// SPDX-License-Identifier: GPL-2.0-only
// From a generator's parameters in a railyard.protos.Fabric to the fabric it makes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// The generators' names, as Fabric.source has them.
const std::vector<std::string>& GeneratorNames();

// Whether `fabric`, a cursor on a railyard.protos.Fabric, names one of them.
bool NamesGenerator(const ProtoCursor& fabric);
// The fabric of the generator it names. nullopt after an error, and if it names none; every mistake
// is a finding.
std::optional<FabricGraph> LoadGenerator(const ProtoCursor& fabric, Diagnostics& diagnostics);

}  // namespace railyard
