// SPDX-License-Identifier: GPL-2.0-only
// Makes a checked FabricGraph from a scenario's `fabric { }`.
#pragma once

#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/platforms/preset.h"

namespace railyard {

// Says for what a fabric is loaded. kRun also refuses fabrics that can be shown but not simulated.
enum class FabricUse { kShow, kRun };

// Returns the fabric of a preset, of a generator's parameters, or of a file with a
// railyard.protos.Topology; `fabric` is a cursor on a railyard.protos.Fabric. Returns nullopt after
// an error, including an error in the text of `fabric` that has been reported before; every mistake
// is a finding.
std::optional<FabricGraph> LoadFabric(const ProtoCursor& fabric, Diagnostics& diagnostics,
                                      FabricUse use = FabricUse::kRun);

// Returns whether the fabric can be simulated; each obstacle is a finding at `fabric`, a cursor as
// above.
bool CanRun(const FabricGraph& graph, const ProtoCursor& fabric, Diagnostics& diagnostics);

}  // namespace railyard
