// SPDX-License-Identifier: GPL-2.0-only
// Links held for too long: storms, and deadlocks with their cycle.
#include <unordered_set>

#include "simulator/fabric/fabric_network.h"

namespace railyard {

const char* HoldKindName(HoldKind kind) {
  return kind == HoldKind::kPauseStorm ? "PAUSE_STORM" : "BUFFER_DEADLOCK";
}

void FabricNetwork::HandleHoldCheck(void* self, uint32_t id) {
  auto& network = *static_cast<FabricNetwork*>(self);
  Port& port = network.PortOf(id);
  port.check_pending = false;
  if (!network.IsHeld(id)) return;
  const int64_t now_ps = network.engine_->NowPs();
  const int64_t due_ps = port.held_since_ps + network.storm_threshold_ps_;
  if (due_ps > now_ps) {  // it was released in between
    port.check_pending = true;
    network.engine_->ScheduleFabric(due_ps, EventClass::kHoldCheck, id, id);
    return;
  }
  const std::vector<LinkId> cycle = network.FindCycle(id);
  HoldReport report{.time_ps = now_ps,
                    .link = id,
                    .kind = cycle.empty() ? HoldKind::kPauseStorm : HoldKind::kBufferDeadlock,
                    .cycle = {}};
  for (const LinkId link : cycle) report.cycle.push_back(network.graph_->link(link).name);
  network.hold_reports_.push_back(std::move(report));
}

// `waiting` ends in a device that holds packets of it, and one of those waits for the held link
// `next` out of that device.
bool FabricNetwork::WaitsFor(LinkId waiting, LinkId next) const {
  if (!IsHeld(next)) return false;
  const Port& port = ports_[port_of_link_[next]];
  if (port.data.empty()) return false;
  for (uint32_t i = port.data.first;; i = packets_[i].next) {
    if (packets_[i].ingress == waiting) return true;
    if (i == port.data.last) return false;
  }
}

std::vector<LinkId> FabricNetwork::FindCycle(LinkId id) const {
  // Depth first from `id`; `path` is the way to the link being looked at.
  std::vector<LinkId> path;
  std::unordered_set<LinkId> seen;
  const std::function<bool(LinkId)> leads_back = [&](LinkId link) {
    path.push_back(link);
    const DeviceId device = graph_->link_target(link);
    for (const auto edge : boost::make_iterator_range(boost::out_edges(device, graph_->graph()))) {
      const LinkId next = graph_->link_of_edge(edge);
      if (!WaitsFor(link, next)) continue;
      if (next == id || (seen.insert(next).second && leads_back(next))) return true;
    }
    path.pop_back();
    return false;
  };
  return leads_back(id) ? path : std::vector<LinkId>{};
}

}  // namespace railyard
