// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/communicator_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topologies/routing.h"

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

}  // namespace

CommunicatorLayout LayoutOf(const FabricGraph& graph, const std::vector<uint32_t>& gpus) {
  CommunicatorLayout layout;
  std::map<int32_t, uint32_t> node_of_server;
  for (const uint32_t gpu : gpus) {
    const Device& device = graph.device(graph.gpus()[gpu]);
    const auto node =
        node_of_server.try_emplace(device.server, static_cast<uint32_t>(node_of_server.size()))
            .first->second;
    layout.ranks.push_back({node, static_cast<uint32_t>(device.local_index)});
  }
  uint32_t local_index_max = 0;
  for (const DeviceId gpu : graph.gpus()) {
    const Device& device = graph.device(gpu);
    local_index_max = std::max(local_index_max, static_cast<uint32_t>(device.local_index));
  }
  layout.gpus_per_server = local_index_max + 1;
  if (!gpus.empty()) {
    if (const auto nic = graph.NicOfGpu(graph.gpus()[gpus.front()])) {
      layout.nic_bps = NicRateBps(graph, *nic);
    }
  }
  return layout;
}

void CheckReachability(const FabricGraph& graph, const Job& job, const SourceLocation& where,
                       Diagnostics& diagnostics) {
  const EcmpRouting routing(graph, 0);
  std::set<uint32_t> reported;
  const auto error = [&](uint32_t gpu, const std::string& what) {
    if (reported.insert(gpu).second && reported.size() <= 8) {
      diagnostics.Error(where, "fabric", what);
    }
  };
  for (const TraceCommunicator& communicator : job.communicators) {
    // All of one server must share an NVSwitch with its first rank, and that one must reach the
    // next server's: enough to find every missing island, NIC and cut fabric.
    std::map<int32_t, uint32_t> first_of_server;
    for (const uint32_t rank : communicator.ranks) {
      const DeviceId gpu = graph.gpus()[rank];
      const auto [first, is_new] = first_of_server.try_emplace(graph.device(gpu).server, rank);
      const DeviceId first_gpu = graph.gpus()[first->second];
      if (!is_new && graph.SharedNvSwitches(first_gpu, gpu).empty()) {
        error(rank,
              fmt::format("{} and {} share no NVSwitch, and communicator {} needs a path "
                          "between them (expected an NVSwitch cabled to both)",
                          graph.device(first_gpu).name, graph.device(gpu).name, communicator.name));
      }
    }
    if (first_of_server.size() < 2) continue;
    const DeviceId hub = graph.gpus()[communicator.ranks.front()];
    for (const uint32_t rank : communicator.ranks) {
      const DeviceId gpu = graph.gpus()[rank];
      if (graph.device(gpu).server == graph.device(hub).server &&
          rank != communicator.ranks.front()) {
        continue;
      }
      if (!graph.NicOfGpu(gpu)) {
        error(rank, fmt::format("{} has no NIC, and communicator {} spans servers",
                                graph.device(gpu).name, communicator.name));
      } else if (gpu != hub && graph.NicOfGpu(hub) &&
                 (routing.Resolve(hub, gpu, 0).empty() || routing.Resolve(gpu, hub, 0).empty())) {
        error(rank,
              fmt::format("no path over the fabric joins {} and {}, and communicator {} needs "
                          "one",
                          graph.device(hub).name, graph.device(gpu).name, communicator.name));
      }
    }
  }
}

}  // namespace railyard
