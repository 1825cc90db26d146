// SPDX-License-Identifier: GPL-2.0-only
// NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it: the CPUs of a server, under each a tree of
// PCIe devices, in it GPUs with their NVLinks and NICs (NCCL 2.27, src/graph/xml.cc, topo.cc):
//
//   <system version="1">
//     <cpu numaid="0" …>
//       <pci busid="0000:16:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16" …>
//         <pci busid="0000:18:00.0" class="0x030200" …>
//           <gpu dev="0" sm="90" rank="0"> <nvlink target="0000:07:00.0" count="5"
//           tclass="0x068000"/>
//         <pci busid="0000:19:00.0" class="0x020700" …> <nic> <net name="mlx5_0" speed="400000" …/>
//
// GPUs are numbered by rank, then by place. NVSwitches are what NVLinks of class 0x068000 lead to.
// Each GPU takes the NIC that is nearest in the tree, of several the least used; NICs that none
// takes (management, storage) are left out with a warning. The way to it is as fast as its slowest
// PCIe link after packet overhead; that links of a switch are shared is not modelled. Read as a
// stream without network; a document type declaration, with which entities come, is refused.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/server_layout.h"

namespace railyard {

// nullopt after an error; every mistake is a finding at its line.
std::optional<ServerLayout> LoadNcclTopology(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
