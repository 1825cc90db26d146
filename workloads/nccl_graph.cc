// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl_graph.h"

#include <algorithm>
#include <vector>

namespace railyard {
namespace {

// Of rings within one server: src/graph/topo.h has 20.6 GB/s for each of an H100's 18 NVLinks, 20
// for an A100's 12 and a V100's 6, 40.1 for a B200's 18; the search settles on a number of rings
// and a speed of its list (speedArrayIntra) that fits. NCCL prints 12 x 20 on A100, 12 x 30 on H100
// (github.com/NVIDIA/nccl/issues/1197) and 16 x 45 on GB300; for V100 with NVSwitches it is
// assumed.
SearchedGraph RingsOfOneServer(GpuGeneration generation) {
  switch (generation) {
    case GpuGeneration::kVolta:
      return {6, 20, 20};
    case GpuGeneration::kAmpere:
      return {12, 20, 20};
    case GpuGeneration::kHopper:
      return {12, 30, 30};
    case GpuGeneration::kBlackwell:
      return {16, 45, 45};
  }
  return {};
}

constexpr double kMeshLinkGbPerS = 20;

// A channel between servers: as fast as its NIC and PCIe allow (48 GB/s: what
// NCCL takes for Gen5 x16), at half of that where two channels share a NIC.
double NicGbPerS(const CommunicatorLayout& layout) {
  // Even without a NIC something is chosen; that there is no path is another matter.
  return std::clamp(static_cast<double>(layout.nic_bps) / 8e9 * 0.96, 0.1, 48.0);
}

uint32_t FewestGpusPerNode(const CommunicatorLayout& layout) {
  std::vector<uint32_t> gpus(layout.node_count());
  for (const RankPlace& place : layout.ranks) ++gpus[place.node];
  return *std::min_element(gpus.begin(), gpus.end());
}

}  // namespace

TunerPlatform SearchedPlatform(const CommunicatorLayout& layout, uint32_t mesh_rings,
                               double pcie_ring_gb_per_s) {
  TunerPlatform platform;
  platform.generation = layout.generation;
  platform.cpu = layout.cpu;
  platform.nvlink = layout.nvlink;
  const uint32_t gpus = FewestGpusPerNode(layout);
  const bool has_nvls =
      layout.nvlink && layout.nvswitch && layout.generation >= GpuGeneration::kHopper;
  // NVLS: one channel per head. 40 GB/s is what the search finds on H100, 80 on GB300 (NCCL's
  // own output).
  const double nvls_gb_per_s = layout.generation == GpuGeneration::kBlackwell ? 80 : 40;
  if (layout.node_count() == 1) {
    platform.ring = layout.nvlink ? RingsOfOneServer(layout.generation)
                                  : SearchedGraph{1, pcie_ring_gb_per_s, pcie_ring_gb_per_s};
    // On a mesh every ring has an NVLink to itself (topo.h: 20 GB/s on SM70 and SM80).
    if (mesh_rings > 0) platform.ring = {mesh_rings, kMeshLinkGbPerS, kMeshLinkGbPerS};
    platform.tree = platform.ring;
    if (has_nvls) platform.nvls = {gpus, nvls_gb_per_s, nvls_gb_per_s * 1.5};
    platform.same_rings = mesh_rings == 0;
    return platform;
  }
  const double nic_gb_per_s = NicGbPerS(layout);
  if (pcie_ring_gb_per_s > 0) {
    platform.ring = {1, pcie_ring_gb_per_s, std::min(pcie_ring_gb_per_s, nic_gb_per_s)};
    platform.tree = platform.ring;
    platform.same_rings = true;
    return platform;
  }
  if (gpus == 1) {
    platform.ring = {2, nic_gb_per_s / 2, nic_gb_per_s / 2};
    platform.same_rings = true;
  } else {
    // Eight rings; two share a NIC where there are four.
    const double gb_per_s = nic_gb_per_s * std::min(1.0, gpus / 8.0);
    platform.ring = {8, gb_per_s, gb_per_s};
  }
  if (mesh_rings > 0) platform.ring.channel_count = mesh_rings;
  platform.tree = platform.ring;
  if (has_nvls && gpus > 1) platform.nvls = {gpus, nvls_gb_per_s, nic_gb_per_s};
  // Ampere's trees meet the NICs on two GPUs of a server (BALANCED_TREE).
  platform.tree_meets_nic_on_one = layout.generation >= GpuGeneration::kHopper;
  return platform;
}

}  // namespace railyard
