// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/nvlink_partitions.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "workloads/layout/fabric_layout.h"

namespace railyard {
namespace {

// Returns true if all packets between two GPUs of a server cross NVLinks only.
bool AreJoined(const FabricGraph& graph, uint32_t a, uint32_t b) {
  const auto paths = graph.NvlinkRoutes(graph.gpus()[a], graph.gpus()[b]);
  const auto is_nvlink = [&](LinkId link) { return graph.link(link).tier == Tier::kNvlink; };
  return !paths.empty() && std::ranges::all_of(paths, [&](const FabricGraph::NvlinkPath& path) {
    return std::ranges::all_of(path.links, is_nvlink);
  });
}

// Returns true if all GPUs of a server are on the same NVSwitches, over which any two communicate.
bool ShareNvSwitches(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  const auto shared_with_first = [&](GpuIndex gpu) {
    return graph.SharedNvSwitches(graph.gpus()[gpus.front()], graph.gpus()[gpu]);
  };
  const std::vector<DeviceId> nvswitches = shared_with_first(gpus.back());
  return !nvswitches.empty() && std::all_of(gpus.begin() + 1, gpus.end(), [&](GpuIndex gpu) {
    return shared_with_first(gpu) == nvswitches;
  });
}

// Returns the GPUs over which two others of their server communicate that no NVLinks join directly.
std::vector<GpuIndex> RelaysBetween(const FabricGraph& graph, GpuIndex a, GpuIndex b) {
  std::vector<GpuIndex> relays;
  for (const auto& path : graph.NvlinkRoutes(graph.gpus()[a], graph.gpus()[b])) {
    for (const LinkId link : path.links) {
      const Device& device = graph.device(graph.link_target(link));
      if (device.kind != DeviceKind::kGpu) continue;
      const GpuIndex gpu = graph.GpuOfServer(a, static_cast<uint32_t>(device.local_index));
      if (gpu != b) relays.push_back(gpu);
    }
  }
  return relays;
}

// Returns true if AreJoined() holds for all pairs. GPUs on the same NVSwitches are not compared
// one by one.
bool AreAllJoined(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  // They may also communicate over PCIe, whose links belong to no partition.
  if (graph.HostBridgeOf(graph.gpus()[gpus.front()])) return false;
  const size_t rows = ShareNvSwitches(graph, gpus) ? 1 : gpus.size();
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = i + 1; j < gpus.size(); ++j) {
      if (!AreJoined(graph, gpus[i], gpus[j])) return false;
    }
  }
  return true;
}

void AddLinks(const FabricGraph& graph, GpuIndex gpu, std::vector<LinkId>& links) {
  for (const auto edge :
       boost::make_iterator_range(boost::out_edges(graph.gpus()[gpu], graph.graph()))) {
    if (graph.graph()[edge].tier != Tier::kNvlink) continue;
    const LinkId link = graph.link_of_edge(edge);
    links.push_back(link);
    links.push_back(graph.ReverseLink(link));
  }
}

// Describes its GPUs and links, but for the server they are of.
std::vector<uint64_t> PropertiesOf(const FabricGraph& graph, const NvlinkPartition& partition) {
  std::vector<uint64_t> properties = {partition.gpus.size()};
  const auto add_device = [&](DeviceId id) {
    const Device& device = graph.device(id);
    properties.push_back(static_cast<uint64_t>(device.kind) << 32 |
                         static_cast<uint32_t>(device.local_index));
    properties.push_back(static_cast<uint64_t>(device.forwarding_latency_ps));
    properties.push_back(device.compute_capability);
    properties.push_back(static_cast<uint64_t>(device.cpu));
  };
  for (const GpuIndex gpu : partition.gpus) add_device(graph.gpus()[gpu]);
  for (const LinkId id : partition.links) {
    const LinkProperties& link = graph.link(id);
    add_device(graph.link_source(id));
    add_device(graph.link_target(id));
    properties.insert(properties.end(),
                      {link.rate_bps, static_cast<uint64_t>(link.propagation_ps), link.lanes});
  }
  return properties;
}

}  // namespace

NvlinkPartitions::NvlinkPartitions(const FabricGraph& graph,
                                   std::span<const TraceCommunicator> communicators)
    : parents_(graph.gpus().size()),
      is_joined_(parents_.size()),
      of_gpu_(graph.gpus().size(), PartitionIndex::kNone),
      place_of_gpu_(graph.gpus().size()) {
  std::iota(parents_.begin(), parents_.end(), GpuIndex{0});
  for (const TraceCommunicator& communicator : communicators) {
    uses_.push_back(Join(graph, GpusOf(communicator)));
  }
  std::vector<PartitionIndex> of_root(parents_.size(), PartitionIndex::kNone);
  for (GpuIndex gpu{0}; gpu < parents_.size(); ++gpu) {
    if (!is_joined_[gpu]) continue;
    PartitionIndex& partition = of_root[RootOf(gpu)];
    if (partition == PartitionIndex::kNone) {
      partition = PartitionIndex{partitions_.size()};
      partitions_.emplace_back();
    }
    of_gpu_[gpu] = partition;
    place_of_gpu_[gpu] = static_cast<uint32_t>(partitions_[partition].gpus.size());
    partitions_[partition].gpus.push_back(gpu);
    AddLinks(graph, gpu, partitions_[partition].links);
  }
  std::map<std::vector<uint64_t>, uint32_t> shapes;
  for (NvlinkPartition& partition : partitions_) {
    // Both GPUs of a cable have added it.
    std::ranges::sort(partition.links);
    partition.links.erase(std::unique(partition.links.begin(), partition.links.end()),
                          partition.links.end());
    partition.shape =
        shapes.try_emplace(PropertiesOf(graph, partition), shapes.size()).first->second;
  }
}

NvlinkUse NvlinkPartitions::Join(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  std::map<ServerIndex, std::vector<GpuIndex>> gpus_of_server;
  for (const GpuIndex gpu : gpus) {
    gpus_of_server[graph.device(graph.gpus()[gpu]).server].push_back(gpu);
  }
  for (const auto& [server, of_server] : gpus_of_server) JoinServer(graph, of_server);
  // The rank that relays for another (PXN) is in the communicator, too.
  if (gpus_of_server.size() == gpus.size()) return NvlinkUse::kNone;
  const bool is_only = gpus_of_server.size() == 1 && AreAllJoined(graph, gpus);
  return is_only ? NvlinkUse::kOnly : NvlinkUse::kMixed;
}

// Joins GPUs of one server, and in meshes those over which they communicate.
void NvlinkPartitions::JoinServer(const FabricGraph& graph, const std::vector<GpuIndex>& gpus) {
  for (size_t i = 1; i < gpus.size(); ++i) JoinGpus(gpus.front(), gpus[i]);
  if (ShareNvSwitches(graph, gpus)) return;
  for (size_t i = 0; i < gpus.size(); ++i) {
    for (size_t j = 0; j < gpus.size(); ++j) {
      if (i == j) continue;
      for (const GpuIndex relay : RelaysBetween(graph, gpus[i], gpus[j])) JoinGpus(gpus[i], relay);
    }
  }
}

void NvlinkPartitions::JoinGpus(GpuIndex a, GpuIndex b) {
  is_joined_[a] = is_joined_[b] = true;
  parents_[RootOf(a)] = RootOf(b);
}

GpuIndex NvlinkPartitions::RootOf(GpuIndex gpu) {
  while (parents_[gpu] != gpu) gpu = parents_[gpu] = parents_[parents_[gpu]];
  return gpu;
}

}  // namespace railyard
