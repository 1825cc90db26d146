// SPDX-License-Identifier: GPL-2.0-only
// From topology.txt (topologies/formats/ns3_topology_reader.h) to a fabric. The format knows
// neither NICs nor PCIe nor names nor tiers: a GPU's cables to switches become those of a NIC of
// its own, whose HOST cable is as fast as they are together and takes no time; a switch's tier
// follows from how far it is from the nearest NIC. Forwarding takes no time. A host of HPCC's form
// is a server of one GPU.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// nullopt after an error; every mistake is a finding at its line.
std::optional<FabricGraph> LoadNs3Topology(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
