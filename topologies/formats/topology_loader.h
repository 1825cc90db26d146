// SPDX-License-Identifier: GPL-2.0-only
// From what a scenario's `fabric { }` says to a checked FabricGraph.
#pragma once

#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/platforms/preset.h"

namespace railyard {

// What the fabric is for: to be shown, or also to be run, which not all of them can.
enum class FabricUse { kShow, kRun };

// `fabric` is a cursor on a railyard.protos.Fabric: a preset, a generator's parameters, or a file
// with a railyard.protos.Topology. nullopt after an error, also of one in the text of `fabric` that
// has been reported before; every mistake is a finding.
std::optional<FabricGraph> LoadFabric(const ProtoCursor& fabric, Diagnostics& diagnostics,
                                      FabricUse use = FabricUse::kRun);

}  // namespace railyard
