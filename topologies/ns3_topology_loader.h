// SPDX-License-Identifier: GPL-2.0-only
// The topology.txt of the RDMA simulators on ns-3. HPCC's form, which ASTRA-sim's ns-3 back end
// reads as well:
//
//   NODES SWITCHES LINKS
//   id of each switch, all others are hosts
//   SOURCE TARGET RATE DELAY ERROR_RATE         a line per link
//
// and SimAI's, whose hosts are GPUs and whose first switches are the servers' NVSwitches:
//
//   NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE
//   id of each NVSwitch, then of each switch
//   SOURCE TARGET RATE DELAY ERROR_RATE
//
// (alibaba-edu/High-Precision-Congestion-Control, simulation/mix/fat.txt; aliyun/SimAI,
// gen_Topo_Template.py.) The format knows neither NICs nor PCIe nor names nor tiers: a GPU's cables
// to switches become those of a NIC of its own, whose HOST cable is as fast as they are together
// and takes no time; a switch's tier follows from how far it is from the nearest NIC. Forwarding
// takes no time. A host of HPCC's form is a server of one GPU. What follows the last link is not
// read, as by those programs.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// nullopt after an error; every mistake is a finding at its line. Numbers of nodes and links are
// held against the limits before anything is made for them.
std::optional<FabricGraph> LoadNs3Topology(const std::string& path, Diagnostics& diagnostics);

// SimAI's form where there are NVSwitches or servers of several GPUs, else HPCC's; into `text`. A
// GPU and its NIC become one node, and a NIC's delay to it is part of its cables' delay. Returns
// why the format cannot say this fabric ("GPUs share server0/nic0"); empty if it can.
std::string ToNs3Topology(const FabricGraph& fabric, std::string& text);

}  // namespace railyard
