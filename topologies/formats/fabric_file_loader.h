// SPDX-License-Identifier: GPL-2.0-only
// A file with a fabric in it, in whatever format, told by what it begins with.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class FabricFileFormat {
  kTopologyText,  // a railyard.protos.Topology
  kFabricText,    // a railyard.protos.Fabric
  kGraphMl,
  kGraphviz,
  kNcclTopology,  // a server
  kNs3Topology,
  kPlatformText,  // a railyard.protos.Platform: a server
  kScenarioText,  // a railyard.protos.Scenario, which has a fabric in it
};
// XML with a <system> is NCCL's, other XML and *.graphml GraphML; what begins with a digit is an
// ns-3 topology.txt, with the word graph, digraph or strict Graphviz; else protobuf text: a
// Scenario if it has a field `fabric` outside of all braces, a Topology or a Platform if the first
// field in it is one of its own.
FabricFileFormat FormatOfFabricFile(const std::string& path);

// All formats but kFabricText, which is a program error; a scenario is a finding. nullopt after an
// error; every mistake is a finding. A server of its own has NICs without cables.
std::optional<FabricGraph> LoadFabricFile(const std::string& path, FabricFileFormat format,
                                          Diagnostics& diagnostics);

}  // namespace railyard
