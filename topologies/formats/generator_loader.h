// SPDX-License-Identifier: GPL-2.0-only
// Makes the fabric of a generator whose parameters are in a railyard.protos.Fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns the generators' names, which are the field names of Fabric.source.
const std::vector<std::string>& GeneratorNames();

// Returns true if `fabric`, a cursor on a railyard.protos.Fabric, names a generator.
bool NamesGenerator(const ProtoCursor& fabric);
// Makes the fabric of the generator that `fabric` names. Returns nullopt after an error, and if it
// names none; every mistake is a finding.
std::optional<FabricGraph> LoadGenerator(const ProtoCursor& fabric, Diagnostics& diagnostics);

}  // namespace railyard
