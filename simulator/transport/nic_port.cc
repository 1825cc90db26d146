// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic_port.h"

#include <algorithm>

namespace railyard {

int64_t ReadAheadPs(const FabricGraph& graph, const FabricNetwork& network, LinkId wire,
                    uint32_t full_wire_bytes) {
  constexpr int64_t kPackets = 2;
  const DeviceId nic = graph.link_source(wire);
  int64_t memory_ps = 0;
  for (const auto edge : boost::make_iterator_range(boost::out_edges(nic, graph.graph()))) {
    const LinkId link = graph.link_of_edge(edge);
    if (graph.link(link).tier != Tier::kHost) continue;
    memory_ps = std::max(
        memory_ps, graph.link(link).propagation_ps + network.TransmissionPs(link, full_wire_bytes));
  }
  return memory_ps + kPackets * network.TransmissionPs(wire, full_wire_bytes);
}

}  // namespace railyard
