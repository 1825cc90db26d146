// SPDX-License-Identifier: GPL-2.0-only
// Writes a fabric as topology.txt (topologies/formats/ns3_topology_reader.h).
#pragma once

#include <string>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Writes SimAI's form if the fabric has NVSwitches or servers of several GPUs, else HPCC's, into
// `text`. A GPU and its NIC become one node; the delay between them is added to that of the NIC's
// cables. Returns why the format cannot express this fabric ("GPUs share server0/nic0"); empty on
// success.
std::string ToNs3Topology(const FabricGraph& fabric, std::string& text);

}  // namespace railyard
