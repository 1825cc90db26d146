// SPDX-License-Identifier: GPL-2.0-only
// The places of a communicator's ranks and the links between them, as found by NCCL's topology
// detection.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

enum class GpuGeneration : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
inline constexpr int kGpuGenerationCount = 4;

// The library that the GPUs' vendor makes: NVIDIA's, or AMD's port of it (workloads/nccl/rccl.h).
enum class CollectiveLibrary : uint8_t { kNccl, kRccl };

// The vendor of the CPUs of a communicator's servers (cpuArch and cpuVendor, src/init.cc). An
// unknown CPU counts as Intel's, up to Ice Lake.
enum class CommunicatorCpu : uint8_t { kIntel, kAmd, kArm, kMixed };

// A GPU's place among the PCIe switches and host bridges of its server, by their local indices; -1
// if there is none.
struct PciePlace {
  int32_t host_bridge = -1;
  int32_t first_switch = -1;  // that the GPU hangs on
  int32_t last_switch = -1;   // that hangs on the host bridge
  uint64_t link_bps = 0;      // of the GPU, payload
  uint64_t uplink_bps = 0;    // of the last switch
};

// The place of one rank.
struct RankPlace {
  uint32_t node = 0;         // nodes numbered in order of first appearance in rank order
  uint32_t local_index = 0;  // the GPU's index in its server, < gpus_per_server
  int32_t server = -1;       // of the fabric; -1: unknown
  PciePlace pcie{};
};
struct CommunicatorLayout {
  std::vector<RankPlace> ranks;
  uint32_t gpus_per_server = 8;           // of the platform, not of the communicator
  uint64_t nic_bps = 400'000'000'000ULL;  // of each GPU's NIC
  GpuGeneration generation = GpuGeneration::kHopper;
  CollectiveLibrary library = CollectiveLibrary::kNccl;
  bool nvlink = true;         // joins the GPUs of a server; else PCIe
  bool peer_access = true;    // over PCIe
  uint32_t gpus_per_nic = 1;  // the most GPUs of a server that share a NIC
  CommunicatorCpu cpu = CommunicatorCpu::kIntel;
  bool nvswitch = true;  // by switches that can add up and copy (NVLink SHARP), from Hopper on
  // mesh_lanes[a][b] is the number of NVLinks from the a-th to the b-th of the first node's GPUs
  // that take part, by local index. It is empty if NVSwitches join all GPUs or there is no NVLink.
  std::vector<std::vector<uint32_t>> mesh_lanes{};
  // Rings by channel, as a log states them (see TraceCommunicator); empty: NCCL's rules determine
  // them.
  std::vector<std::vector<uint32_t>> rings{};
  std::vector<std::vector<int32_t>> tree_parents{};
  uint32_t node_count() const;
};

// Returns the ranks of each node in the order of their GPUs.
std::vector<std::vector<uint32_t>> RanksByNode(const CommunicatorLayout& layout);

}  // namespace railyard
