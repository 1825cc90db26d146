// SPDX-License-Identifier: GPL-2.0-only
// Describes the places of a communicator's ranks and the links between them, as NCCL's topology
// detection finds them.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/units/rank_index.h"
#include "simulator/units/server_index.h"

namespace railyard {

enum class GpuGeneration : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
inline constexpr int kGpuGenerationCount = 4;

// Names the library of the GPUs' vendor: NVIDIA's, or AMD's port of it (workloads/nccl/rccl.h).
enum class CollectiveLibrary : uint8_t { kNccl, kRccl };

// Names the vendor of the CPUs of a communicator's servers (cpuArch and cpuVendor, src/init.cc). An
// unknown CPU counts as an Intel CPU not newer than Ice Lake.
enum class CommunicatorCpu : uint8_t { kIntel, kAmd, kArm, kMixed };

// Describes a GPU's place among the PCIe switches and host bridges of its server, by their local
// indices; -1 if there is none.
struct PciePlace {
  int32_t host_bridge = -1;
  int32_t first_switch = -1;  // to which the GPU is attached
  int32_t last_switch = -1;   // which is attached to the host bridge
  uint64_t link_bps = 0;      // of the GPU, payload
  uint64_t uplink_bps = 0;    // of the last switch
};

// Describes the place of one rank.
struct RankPlace {
  uint32_t node = 0;         // nodes numbered in order of first appearance in rank order
  uint32_t local_index = 0;  // the GPU's index in its server, < gpus_per_server
  ServerIndex server = ServerIndex::kNone;  // of the fabric; kNone if unknown
  PciePlace pcie{};
};
struct CommunicatorLayout {
  std::vector<RankPlace> ranks;
  uint32_t gpus_per_server = 8;           // of the platform, not of the communicator
  uint64_t nic_bps = 400'000'000'000ULL;  // of each GPU's NIC
  GpuGeneration generation = GpuGeneration::kHopper;
  CollectiveLibrary library = CollectiveLibrary::kNccl;
  bool nvlink = true;         // joins the GPUs of a server; else PCIe does
  bool peer_access = true;    // over PCIe
  uint32_t gpus_per_nic = 1;  // largest number of GPUs that share a NIC
  CommunicatorCpu cpu = CommunicatorCpu::kIntel;
  bool nvswitch = true;  // the NVSwitches can reduce and multicast (NVLink SHARP), from Hopper on
  // mesh_lanes[a][b] is the number of NVLinks from the a-th to the b-th participating GPU of the
  // first node, in the order of local indices. It is empty if NVSwitches join all GPUs or there is
  // no NVLink.
  std::vector<std::vector<uint32_t>> mesh_lanes{};
  // Rings by channel, as a log states them (see TraceCommunicator). If it is empty, NCCL's rules
  // determine them.
  std::vector<std::vector<uint32_t>> rings{};
  std::vector<std::vector<int32_t>> tree_parents{};
  uint32_t node_count() const;
};

// Returns the ranks of each node in the order of their GPUs.
std::vector<std::vector<RankIndex>> RanksByNode(const CommunicatorLayout& layout);

}  // namespace railyard
