// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_graph.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace railyard {
namespace {

// Rings within one server: src/graph/topo.h has 20.6 GB/s for each of an H100's 18 NVLinks, 20 for
// an A100's 12 and a V100's 6, 40.1 for a B200's 18; the search settles on a number of rings and a
// speed of its list (speedArrayIntra) that fits. NCCL prints 12 x 20 on A100, 12 x 30 on H100
// (github.com/NVIDIA/nccl/issues/1197) and 16 x 45 on GB300; the value for V100 with NVSwitches is
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

// RCCL counts 48 GB/s for each of an MI300X's seven xGMI links (GFX94X, src/graph/topo.h) and
// divides the sum evenly among its rings, between servers too (parseGraph, rome_models.cc).
constexpr double kMi300xGbPerS = 7 * 48.0;

// A channel between servers: as fast as its NIC and PCIe allow (48 GB/s: what NCCL takes for Gen5
// x16; 96 for Gen6, which NICs of 800 Gb/s have), at half of that where two channels share a NIC.
double NicGbPerS(const CommunicatorLayout& layout) {
  const double pcie_gb_per_s = layout.nic_bps >= 800'000'000'000ULL ? 96 : 48;
  // Even without a NIC something is chosen; that there is no path is another matter.
  return std::clamp(static_cast<double>(layout.nic_bps) / 8e9 * 0.96, 0.1, pcie_gb_per_s);
}

// Speeds that the search tries between servers, in GB/s (speedArrayInter, src/graph/search.cc).
constexpr std::array kSpeeds = {0.12, 0.24, 1.2, 2.4, 3.0,  4.0,  5.0,  6.0,  7.0, 9.0,
                                10.0, 12.0, 15., 18., 20.0, 24.0, 28.0, 30.0, 48.0};
constexpr std::array kHopperSpeeds = {0.12, 0.24, 1.2,  2.4,  3.0,  6.0,  12.0, 15.0, 17.5,
                                      20.0, 22.0, 24.0, 30.0, 40.0, 42.0, 45.0, 48.0};
constexpr std::array kBlackwellSpeeds = {0.12, 0.24, 1.2,  2.4,  3.0,  6.0,  12.0, 15.0, 17.5, 20.0,
                                         22.0, 24.0, 30.0, 40.0, 42.0, 45.1, 48.0, 80.0, 96.0};
std::span<const double> SpeedsOf(GpuGeneration generation) {
  if (generation == GpuGeneration::kBlackwell) return kBlackwellSpeeds;
  if (generation == GpuGeneration::kHopper) return kHopperSpeeds;
  return kSpeeds;
}

// Sum over a GPU's NVLinks to NVSwitches (src/graph/topo.h): 6, 12, 18, 18.
constexpr std::array<double, kGpuGenerationCount> kNvlinkGbPerS = {6 * 20.0, 12 * 20.0, 18 * 20.6,
                                                                   18 * 40.1};

// Up and down a tree goes what its NIC carries in and out: inside a server the search raises its
// speed as far as twice the NICs', speed by speed, while NVLinks carry it (ncclTopoCompute,
// src/graph/search.cc: "See if we can increase bwIntra for trees").
SearchedGraph TreesAlong(const SearchedGraph& rings, GpuGeneration generation) {
  SearchedGraph trees = rings;
  for (const double speed : SpeedsOf(generation)) {
    if (speed <= trees.intra_gb_per_s) continue;
    if (trees.intra_gb_per_s >= 2 * trees.inter_gb_per_s) break;
    if (speed * trees.channel_count > kNvlinkGbPerS[static_cast<size_t>(generation)]) break;
    trees.intra_gb_per_s = speed;
  }
  return trees;
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
  platform.library = layout.library;
  platform.nvlink = layout.nvlink;
  if (layout.library == CollectiveLibrary::kRccl && mesh_rings > 0) {
    platform.ring = {mesh_rings, kMi300xGbPerS / mesh_rings, kMi300xGbPerS / mesh_rings};
    platform.tree = platform.ring;
    return platform;
  }
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
    const double nics = std::max(1.0, static_cast<double>(gpus) / layout.gpus_per_nic);
    const double gb_per_s = nic_gb_per_s * std::min(1.0, nics / 8.0);
    platform.ring = {8, gb_per_s, gb_per_s};
  }
  if (mesh_rings > 0) platform.ring.channel_count = mesh_rings;
  platform.tree = platform.ring;
  if (layout.nvlink && layout.nvswitch && gpus > 1) {
    platform.tree = TreesAlong(platform.ring, layout.generation);
  }
  if (has_nvls && gpus > 1) {
    platform.nvls = {gpus, nvls_gb_per_s, nic_gb_per_s / layout.gpus_per_nic};
  }
  // Ampere's trees meet the NICs on two GPUs of a server (BALANCED_TREE).
  platform.tree_meets_nic_on_one = layout.generation >= GpuGeneration::kHopper;
  return platform;
}

}  // namespace railyard
