// SPDX-License-Identifier: GPL-2.0-only
// Reads GraphML (graphml.graphdrawing.org), written by Railyard or by another program. Nodes are
// devices and edges are cables; their data are the fields of railyard.protos.TopologyDevice and
// TopologyLink by name, e.g.
//
//   <node id="a"><data key="k">GPU</data>…</node>   with <key id="k" for="node" attr.name="kind"/>
//
// A node without a name is named by its id. Data without text count as absent; unknown attributes
// are named in a warning and ignored. Nested graphs, ports and hyperedges are refused.
// Boost.Graph's reader gives no line numbers and accepts repeated ids, so this one reads with
// libxml2, as a stream, without network or external entities and within libxml2's limits on entity
// expansion.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

inline constexpr uint64_t kGraphFileBytesMax = uint64_t{1} << 30;

// Returns nullopt after an error; every mistake is a finding at its line.
std::optional<FabricGraph> LoadGraphMl(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
