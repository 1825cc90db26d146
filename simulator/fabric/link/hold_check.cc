// SPDX-License-Identifier: GPL-2.0-only
// Links held for too long: storms, and deadlocks with their cycle.
#include <unordered_set>

#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

const char* HoldKindName(HoldKind kind) {
  return kind == HoldKind::kPauseStorm ? "PAUSE_STORM" : "BUFFER_DEADLOCK";
}

void FabricNetwork::HandleHoldCheck(void* self, uint32_t channel) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const LinkId id = network.LinkOf(channel);
  const uint32_t lossless_class = network.LosslessClassOf(channel);
  Port& port = network.PortOf(id);
  DataQueue& queue = port.data[lossless_class];
  queue.check_pending = false;
  if ((port.held_classes() & Port::BitOf(lossless_class)) == 0) return;
  const int64_t now_ps = network.engine_->NowPs();
  const int64_t due_ps = queue.held_since_ps + network.storm_threshold_ps_;
  if (due_ps > now_ps) {  // it was released in between
    queue.check_pending = true;
    network.engine_->ScheduleFabric(due_ps, event_order::kHoldCheck, channel, channel);
    return;
  }
  const std::vector<VirtualChannelId> cycle = network.FindCycle(channel);
  HoldReport report{.time_ps = now_ps,
                    .link = id,
                    .kind = cycle.empty() ? HoldKind::kPauseStorm : HoldKind::kBufferDeadlock,
                    .cycle = {}};
  for (const VirtualChannelId held : cycle) report.cycle.push_back(network.NameOf(held));
  network.hold_reports_.push_back(std::move(report));
}

// `waiting` ends in a device that holds packets of it, and one of those waits for the held channel
// `next` out of that device.
bool FabricNetwork::WaitsFor(VirtualChannelId waiting, VirtualChannelId next) const {
  if (!IsHeld(LinkOf(next))) return false;
  const Port& port = ports_[port_of_link_[LinkOf(next)]];
  const uint32_t lossless_class = LosslessClassOf(next);
  if ((port.held_classes() & port.waiting_classes & Port::BitOf(lossless_class)) == 0) return false;
  const DataQueue& queue = port.data[lossless_class];
  for (uint32_t i = queue.first;; i = packets_[i].next) {
    if (packets_[i].ingress == waiting) return true;
    if (i == queue.last) return false;
  }
}

std::vector<VirtualChannelId> FabricNetwork::FindCycle(VirtualChannelId start) const {
  // Depth first from `start`; `path` is the way to the channel being looked at.
  std::vector<VirtualChannelId> path;
  std::unordered_set<VirtualChannelId> seen;
  const std::function<bool(VirtualChannelId)> leads_back = [&](VirtualChannelId channel) {
    path.push_back(channel);
    const DeviceId device = graph_->link_target(LinkOf(channel));
    for (const auto edge : boost::make_iterator_range(boost::out_edges(device, graph_->graph()))) {
      const LinkId link = graph_->link_of_edge(edge);
      for (uint32_t of = 0; of < ClassCountOf(link); ++of) {
        const VirtualChannelId next = ChannelOf(link, of);
        if (!WaitsFor(channel, next)) continue;
        if (next == start || (seen.insert(next).second && leads_back(next))) return true;
      }
    }
    path.pop_back();
    return false;
  };
  return leads_back(start) ? path : std::vector<VirtualChannelId>{};
}

}  // namespace railyard
