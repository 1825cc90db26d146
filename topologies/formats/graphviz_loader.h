// SPDX-License-Identifier: GPL-2.0-only
// Reads Graphviz's DOT, written by Railyard or by another program. Nodes are devices and edges are
// cables; their attributes are the fields of railyard.protos.TopologyDevice and TopologyLink by
// name, e.g.
//
//   graph f { name="f"; a [kind=GPU server=0 local_index=0]; a -- b [tier=HOST rate="55GBps"]; }
//
// A node without a name is named by its id. Other attributes (label, color, …) are for Graphviz and
// are ignored. Directed edges count as cables too. Subgraphs, defaults for nodes and edges, ports
// and HTML texts are refused. Boost.Graph writes DOT but does not read it here: its reader has
// neither line numbers nor a limit on nesting.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns nullopt after an error; every mistake is a finding at its line. Reading stops at a syntax
// error after which the rest cannot be interpreted.
std::optional<FabricGraph> LoadGraphviz(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
