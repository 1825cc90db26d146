// SPDX-License-Identifier: GPL-2.0-only
// Where the ranks of a communicator are, and what joins them: what NCCL's topology detection finds.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

enum class GpuGeneration : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
inline constexpr int kGpuGenerationCount = 4;

// Who made the CPUs of a communicator's servers (cpuArch and cpuVendor, src/init.cc). One that is
// not known counts as Intel's, up to Ice Lake.
enum class CommunicatorCpu : uint8_t { kIntel, kAmd, kArm, kMixed };

// A GPU's place among the PCIe switches and host bridges of its server, by their local indices; -1:
// there is none.
struct PciePlace {
  int32_t host_bridge = -1;
  int32_t first_switch = -1;  // that the GPU hangs on
  int32_t last_switch = -1;   // that hangs on the host bridge
  uint64_t link_bps = 0;      // of the GPU, payload
  uint64_t uplink_bps = 0;    // of the last switch
};

// Where a communicator's ranks are: what NCCL's topology detection would find.
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
  bool nvlink = true;         // joins the GPUs of a server; else PCIe
  bool peer_access = true;    // over PCIe
  uint32_t gpus_per_nic = 1;  // the most of its own that share a NIC
  CommunicatorCpu cpu = CommunicatorCpu::kIntel;
  bool nvswitch = true;  // by switches that can add up and copy (NVLink SHARP), from Hopper on
  // Where NVLinks lead from GPU to GPU: how many from the a-th of the first node's GPUs that take
  // part, by local index, to the b-th. Empty: NVSwitches join them all, or nothing does.
  std::vector<std::vector<uint32_t>> mesh_lanes{};
  // As a log states them, by channel; empty: by NCCL's rules. As TraceCommunicator has them.
  std::vector<std::vector<uint32_t>> rings{};
  std::vector<std::vector<int32_t>> tree_parents{};
  uint32_t node_count() const;
};

// Ranks of each node in the order of their GPUs.
std::vector<std::vector<uint32_t>> RanksByNode(const CommunicatorLayout& layout);

}  // namespace railyard
