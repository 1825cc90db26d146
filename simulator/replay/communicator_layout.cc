// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/communicator_layout.h"

#include <algorithm>
#include <map>

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

}  // namespace railyard
