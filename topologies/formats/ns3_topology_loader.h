// SPDX-License-Identifier: GPL-2.0-only
// Makes a fabric of a topology.txt (topologies/formats/ns3_topology_reader.h). The format has
// neither NICs nor PCIe, names or tiers. Each GPU therefore gets a NIC for its cables to switches;
// the HOST cable to it is as fast as those cables together and adds no delay. A switch's tier
// follows from its distance to the nearest NIC. Switches forward without delay. A host of HPCC's
// form is a server with one GPU.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns nullopt after an error; every mistake is a finding at its line.
std::optional<FabricGraph> LoadNs3Topology(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
