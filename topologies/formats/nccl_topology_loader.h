// SPDX-License-Identifier: GPL-2.0-only
// Reads NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it: the CPUs of a server and below each
// a tree of PCIe devices with GPUs, their NVLinks, and NICs (NCCL 2.27, src/graph/xml.cc, topo.cc):
//
//   <system version="1">
//     <cpu numaid="0" …>
//       <pci busid="0000:16:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16" …>
//         <pci busid="0000:18:00.0" class="0x030200" …>
//           <gpu dev="0" sm="90" rank="0">
//             <nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
//         <pci busid="0000:19:00.0" class="0x020700" …> <nic> <net name="mlx5_0" speed="400000" …/>
//
// GPUs are numbered by rank, then by their position in the file. NVLinks of class 0x068000 lead to
// NVSwitches. Each GPU uses the NIC that is nearest in the tree, the least used one among equals;
// NICs that no GPU uses (management, storage) are left out with a warning. The path to the NIC is
// as fast as its slowest PCIe link after packet overhead; contention on shared PCIe links is not
// modelled. The file is read as a stream without network; a document type declaration, which could
// define entities, is refused.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/server_layout.h"

namespace railyard {

// Returns nullopt after an error; every mistake is a finding at its line.
std::optional<ServerLayout> LoadNcclTopology(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
