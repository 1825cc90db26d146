// SPDX-License-Identifier: GPL-2.0-only
// GraphML (graphml.graphdrawing.org), ours or another program's. Nodes are devices, edges cables;
// their data are the fields of railyard.protos.TopologyDevice and TopologyLink by name, e.g.
//
//   <node id="a"><data key="k">GPU</data>…</node>   with <key id="k" for="node" attr.name="kind"/>
//
// A node without a name is called as its id; data without text count as absent; attributes that are
// none of ours are named in a warning and left out. Nested graphs, ports and hyperedges are
// refused. Boost.Graph's reader has no line numbers and takes repeated ids, so libxml2 reads here,
// as a stream, without network or external entities and with its limits on entity expansion.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

inline constexpr uint64_t kGraphFileBytesMax = uint64_t{1} << 30;

// nullopt after an error; every mistake is a finding at its line.
std::optional<FabricGraph> LoadGraphMl(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
