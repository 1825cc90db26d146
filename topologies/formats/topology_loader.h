// SPDX-License-Identifier: GPL-2.0-only
// Makes a checked FabricGraph of a scenario's `fabric { }`.
#pragma once

#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/platforms/preset.h"

namespace railyard {

// kRun also refuses fabrics that can be shown but not simulated.
enum class FabricUse { kShow, kRun };

// `fabric` is a cursor on a railyard.protos.Fabric: a preset, a generator's parameters, or a file
// with a railyard.protos.Topology. Returns nullopt after an error, including an error in the text
// of `fabric` that has been reported before; every mistake is a finding.
std::optional<FabricGraph> LoadFabric(const ProtoCursor& fabric, Diagnostics& diagnostics,
                                      FabricUse use = FabricUse::kRun);

// Whether the fabric can be simulated; what is in the way is found at `fabric`, a cursor as above.
bool CanRun(const FabricGraph& graph, const ProtoCursor& fabric, Diagnostics& diagnostics);

}  // namespace railyard
