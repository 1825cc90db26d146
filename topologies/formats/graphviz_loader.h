// SPDX-License-Identifier: GPL-2.0-only
// Graphviz's DOT, ours or another program's: nodes are devices, edges cables, and their attributes
// are the fields of railyard.protos.TopologyDevice and TopologyLink by name, e.g.
//
//   graph f { name="f"; a [kind=GPU server=0 local_index=0]; a -- b [tier=HOST rate="55GBps"]; }
//
// A node without a name is called as its id. Other attributes (label, color, …) are Graphviz's and
// not looked at. Directed edges are cables as well. Subgraphs, defaults for nodes and edges, ports
// and HTML texts are refused. Boost.Graph's reader has neither lines nor a limit on nesting, so
// this one is our own; Boost.Graph writes.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// nullopt after an error; every mistake is a finding at its line. What the text cannot be read
// beyond ends the reading.
std::optional<FabricGraph> LoadGraphviz(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
