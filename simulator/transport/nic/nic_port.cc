// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/nic_port.h"

#include <algorithm>

namespace railyard {

int64_t ReadAheadPs(const FabricGraph& graph, const FabricNetwork& network, LinkId wire,
                    uint32_t full_wire_bytes) {
  constexpr int64_t kPackets = 2;
  const DeviceId nic = graph.link_source(wire);
  int64_t memory_ps = 0;
  for (const DeviceId gpu : graph.HostNeighbours(nic)) {
    if (graph.device(gpu).kind != DeviceKind::kGpu) continue;
    int64_t path_ps = 0;
    for (const LinkId link : graph.HostPath(gpu, nic)) {
      path_ps += graph.link(link).propagation_ps +
                 graph.device(graph.link_target(link)).forwarding_latency_ps +
                 network.TransmissionPs(link, full_wire_bytes);
    }
    memory_ps = std::max(memory_ps, path_ps);
  }
  return memory_ps + kPackets * network.TransmissionPs(wire, full_wire_bytes);
}

}  // namespace railyard
