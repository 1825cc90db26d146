// SPDX-License-Identifier: GPL-2.0-only
// Loads a fabric from a file of any supported format. The format is detected from the first bytes
// of the file.
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
// Detects the format. XML with a <system> element is NCCL's; other XML and *.graphml files are
// GraphML. A file that begins with a digit is an ns-3 topology.txt; one that begins with the word
// graph, digraph or strict is Graphviz. Anything else is protobuf text: a Scenario if it has a
// top-level field `fabric`, a Topology or a Platform if its first field is one of theirs.
FabricFileFormat FormatOfFabricFile(const std::string& path);

// Loads any format except kFabricText, which is a program error; a scenario is reported as a
// finding. A file that describes a single server yields a fabric whose NICs have no cables. Returns
// nullopt after an error; every mistake is a finding.
std::optional<FabricGraph> LoadFabricFile(const std::string& path, FabricFileFormat format,
                                          Diagnostics& diagnostics);

}  // namespace railyard
