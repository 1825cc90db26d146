// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/layout/fabric_layout.h"

#include <algorithm>
#include <map>

#include "workloads/layout/gpu_of_rank.h"

namespace railyard {
namespace {

uint64_t NicRateBps(const FabricGraph& graph, DeviceId nic) {
  uint64_t rate_bps = 0;
  for (const auto edge : boost::make_iterator_range(boost::out_edges(nic, graph.graph()))) {
    const LinkProperties& link = graph.graph()[edge];
    if (link.tier != Tier::kHost) rate_bps += link.rate_bps;
  }
  return rate_bps;
}

uint64_t NvlinkRateBps(const FabricGraph& graph, DeviceId gpu) {
  uint64_t rate_bps = 0;
  for (const auto edge : boost::make_iterator_range(boost::out_edges(gpu, graph.graph()))) {
    const LinkProperties& link = graph.graph()[edge];
    if (link.tier == Tier::kNvlink) rate_bps += link.rate_bps;
  }
  return rate_bps;
}

bool HasNvSwitch(const FabricGraph& graph, DeviceId gpu) {
  const auto edges = boost::make_iterator_range(boost::out_edges(gpu, graph.graph()));
  return std::any_of(edges.begin(), edges.end(), [&](const auto& edge) {
    return graph.device(static_cast<DeviceId>(boost::target(edge, graph.graph()))).kind ==
           DeviceKind::kNvSwitch;
  });
}

// AMD's MI300X is gfx942, whose major and minor numbers are 9 and 4 (hipDeviceProp_t); no GPU of
// NVIDIA has compute capability 9.4.
constexpr uint32_t kMi300xCapability = 94;

// Follows NCCL's tuner (compCapIndex, src/graph/tuning.cc). MI300X, for which RCCL has rules of its
// own, has nothing that NCCL has for Hopper and later.
GpuGeneration GenerationOfCapability(uint32_t compute_capability) {
  if (compute_capability == kMi300xCapability) return GpuGeneration::kAmpere;
  if (compute_capability >= 100) return GpuGeneration::kBlackwell;
  if (compute_capability >= 90) return GpuGeneration::kHopper;
  return compute_capability >= 80 ? GpuGeneration::kAmpere : GpuGeneration::kVolta;
}

// Guesses an unknown generation from the GPU's NVLink bandwidth per direction: 150 GB/s on V100,
// 300 on A100, 450 on H100, 900 on B200 (NVIDIA's whitepapers). Cut-down versions count as the
// generation below; `gpu.generation` overrides the guess.
GpuGeneration GenerationOf(uint64_t nvlink_bps) {
  constexpr uint64_t kGBps = 8'000'000'000;
  if (nvlink_bps == 0 || (nvlink_bps > 300 * kGBps && nvlink_bps <= 450 * kGBps)) {
    return GpuGeneration::kHopper;
  }
  if (nvlink_bps > 450 * kGBps) return GpuGeneration::kBlackwell;
  return nvlink_bps > 150 * kGBps ? GpuGeneration::kAmpere : GpuGeneration::kVolta;
}

PciePlace PciePlaceOf(const FabricGraph& graph, DeviceId gpu) {
  PciePlace place;
  const auto bridge = graph.HostBridgeOf(gpu);
  if (!bridge) return place;
  place.host_bridge = graph.device(*bridge).local_index;
  const std::vector<LinkId> path = graph.HostPath(gpu, *bridge);
  place.link_bps = graph.link(path.front()).rate_bps;
  place.uplink_bps = graph.link(path.back()).rate_bps;
  if (path.size() == 1) return place;
  place.first_switch = graph.device(graph.link_target(path.front())).local_index;
  place.last_switch = graph.device(graph.link_source(path.back())).local_index;
  return place;
}

// Computes CommunicatorLayout::mesh_lanes for GPUs in the order of their local indices.
std::vector<std::vector<uint32_t>> MeshLanes(const FabricGraph& graph,
                                             const std::vector<DeviceId>& gpus) {
  std::vector<std::vector<uint32_t>> lanes(gpus.size(), std::vector<uint32_t>(gpus.size()));
  for (size_t a = 0; a < gpus.size(); ++a) {
    for (size_t b = 0; b < gpus.size(); ++b) {
      for (const FabricGraph::NvlinkPath& path : graph.NvlinkPaths(gpus[a], gpus[b])) {
        lanes[a][b] += path.lanes;
      }
    }
  }
  return lanes;
}

// Returns those of the GPUs that are on the first one's server, by local index.
std::vector<DeviceId> NeighboursOfFirst(const FabricGraph& graph,
                                        const std::vector<GpuIndex>& gpus) {
  std::vector<DeviceId> neighbours;
  const ServerIndex server = graph.device(graph.gpus()[gpus.front()]).server;
  for (const GpuIndex gpu : gpus) {
    const DeviceId device = graph.gpus()[gpu];
    if (graph.device(device).server == server) neighbours.push_back(device);
  }
  std::sort(neighbours.begin(), neighbours.end(), [&](DeviceId a, DeviceId b) {
    return graph.device(a).local_index < graph.device(b).local_index;
  });
  return neighbours;
}

uint32_t MostGpusPerNic(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  std::map<DeviceId, uint32_t> gpus_of_nic;
  uint32_t most = 1;
  for (const GpuIndex gpu : gpus) {
    const auto nic = graph.NicOfGpu(graph.gpus()[gpu]);
    if (nic) most = std::max(most, ++gpus_of_nic[*nic]);
  }
  return most;
}

// Returns the rate of the GPUs' slowest NIC: ranks agree on the lowest bandwidth that any of them
// has found (bwInter in initTransportsRank, src/init.cc).
uint64_t LeastNicRateBps(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  uint64_t least_bps = UINT64_MAX;
  for (const GpuIndex gpu : gpus) {
    const auto nic = graph.NicOfGpu(graph.gpus()[gpu]);
    if (nic) least_bps = std::min(least_bps, NicRateBps(graph, *nic));
  }
  return least_bps;
}

// Returns kMixed for CPUs that differ, as NCCL does (initTransportsRank, src/init.cc).
CommunicatorCpu CpuOfAll(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  const auto cpu_of = [&](GpuIndex gpu) { return CpuOf(graph.device(graph.gpus()[gpu]).cpu); };
  const CommunicatorCpu first = cpu_of(gpus.front());
  const bool is_same =
      std::ranges::all_of(gpus, [&](GpuIndex gpu) { return cpu_of(gpu) == first; });
  return is_same ? first : CommunicatorCpu::kMixed;
}

}  // namespace

CommunicatorCpu CpuOf(CpuVendor vendor) {
  if (vendor == CpuVendor::kAmd) return CommunicatorCpu::kAmd;
  return vendor == CpuVendor::kArm ? CommunicatorCpu::kArm : CommunicatorCpu::kIntel;
}

std::vector<GpuIndex> GpusOf(const TraceCommunicator& communicator) {
  std::vector<GpuIndex> gpus;
  gpus.reserve(communicator.ranks.size());
  for (const GlobalRank rank : communicator.ranks) gpus.push_back(GpuOf(rank));
  return gpus;
}

CommunicatorLayout LayoutOf(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  CommunicatorLayout layout;
  std::map<ServerIndex, uint32_t> node_of_server;
  for (const GpuIndex gpu : gpus) {
    const Device& device = graph.device(graph.gpus()[gpu]);
    const auto node =
        node_of_server.try_emplace(device.server, static_cast<uint32_t>(node_of_server.size()))
            .first->second;
    layout.ranks.push_back({.node = node,
                            .local_index = static_cast<uint32_t>(device.local_index),
                            .server = device.server,
                            .pcie = PciePlaceOf(graph, graph.gpus()[gpu])});
  }
  uint32_t local_index_max = 0;
  for (const DeviceId gpu : graph.gpus()) {
    const Device& device = graph.device(gpu);
    local_index_max = std::max(local_index_max, static_cast<uint32_t>(device.local_index));
  }
  layout.gpus_per_server = local_index_max + 1;
  if (!gpus.empty()) {
    const uint64_t nvlink_bps = NvlinkRateBps(graph, graph.gpus()[gpus.front()]);
    layout.nvlink = nvlink_bps > 0 || node_of_server.size() == gpus.size();
    layout.nvswitch = HasNvSwitch(graph, graph.gpus()[gpus.front()]);
    const Device& first = graph.device(graph.gpus()[gpus.front()]);
    layout.generation = first.compute_capability == 0
                            ? GenerationOf(nvlink_bps)
                            : GenerationOfCapability(first.compute_capability);
    if (first.compute_capability == kMi300xCapability) layout.library = CollectiveLibrary::kRccl;
    layout.peer_access = first.peer_access;
    layout.cpu = CpuOfAll(graph, gpus);
    layout.gpus_per_nic = MostGpusPerNic(graph, gpus);
    if (nvlink_bps > 0 && !layout.nvswitch) {
      layout.mesh_lanes = MeshLanes(graph, NeighboursOfFirst(graph, gpus));
    }
    if (graph.NicOfGpu(graph.gpus()[gpus.front()])) {
      layout.nic_bps = LeastNicRateBps(graph, gpus);
    }
  }
  return layout;
}

CommunicatorLayout LayoutOf(const FabricGraph& graph, const TraceCommunicator& communicator) {
  CommunicatorLayout layout = LayoutOf(graph, GpusOf(communicator));
  layout.rings = communicator.rings;
  layout.tree_parents = communicator.tree_parents;
  return layout;
}

}  // namespace railyard
