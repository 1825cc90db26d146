// SPDX-License-Identifier: GPL-2.0-only
// Writes a fabric as topology.txt (topologies/formats/ns3_topology_reader.h).
#pragma once

#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// SimAI's form where there are NVSwitches or servers of several GPUs, else HPCC's; into `text`. A
// GPU and its NIC become one node, and a NIC's delay to it is part of its cables' delay. Returns
// why the format cannot say this fabric ("GPUs share server0/nic0"); empty if it can.
std::string ToNs3Topology(const FabricGraph& fabric, std::string& text);

}  // namespace railyard
