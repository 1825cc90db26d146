// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/link/hold_monitor.h"

#include <functional>
#include <unordered_set>
#include <utility>

namespace railyard {

const char* HoldKindName(HoldKind kind) {
  return kind == HoldKind::kPauseStorm ? "PAUSE_STORM" : "BUFFER_DEADLOCK";
}

std::optional<int64_t> HoldMonitor::Begin(VirtualChannelId channel) {
  const LinkId link = tables_.LinkOf(channel);
  tables_.is_held[link] = 1;
  DataQueue& queue = tables_.PortOf(link).data[tables_.LosslessClassOf(channel)];
  queue.held_since_ps = tables_.NowPs();
  if (queue.check_pending) return std::nullopt;
  queue.check_pending = true;
  return queue.held_since_ps + tables_.settings.storm_threshold_ps;
}

std::optional<int64_t> HoldMonitor::Check(VirtualChannelId channel) {
  const LinkId link = tables_.LinkOf(channel);
  const uint32_t lossless_class = tables_.LosslessClassOf(channel);
  Port& port = tables_.PortOf(link);
  DataQueue& queue = port.data[lossless_class];
  queue.check_pending = false;
  if ((port.held_classes() & Port::BitOf(lossless_class)) == 0) return std::nullopt;
  const int64_t now_ps = tables_.NowPs();
  const int64_t due_ps = queue.held_since_ps + tables_.settings.storm_threshold_ps;
  if (due_ps > now_ps) {
    queue.check_pending = true;
    return due_ps;
  }
  const std::vector<VirtualChannelId> cycle = FindCycle(channel);
  HoldReport report{.time_ps = now_ps,
                    .link = link,
                    .kind = cycle.empty() ? HoldKind::kPauseStorm : HoldKind::kBufferDeadlock,
                    .cycle = {}};
  for (const VirtualChannelId held : cycle) report.cycle.push_back(tables_.NameOf(held));
  reports_.push_back(std::move(report));
  return std::nullopt;
}

// `waiting` ends in a device that holds packets of it, and one of those waits for the held channel
// `next` out of that device.
bool HoldMonitor::WaitsFor(VirtualChannelId waiting, VirtualChannelId next) const {
  const LinkId link = tables_.LinkOf(next);
  if (tables_.is_held[link] == 0) return false;
  const Port& port = *tables_.FindPort(link);
  const uint32_t lossless_class = tables_.LosslessClassOf(next);
  if ((port.held_classes() & port.waiting_classes & Port::BitOf(lossless_class)) == 0) return false;
  const DataQueue& queue = port.data[lossless_class];
  for (PacketId i = queue.first;; i = tables_.packets[i].next) {
    if (tables_.packets[i].ingress == waiting) return true;
    if (i == queue.last) return false;
  }
}

std::vector<VirtualChannelId> HoldMonitor::FindCycle(VirtualChannelId start) const {
  const FabricGraph& graph = *tables_.graph;
  // Depth first from `start`; `path` is the way to the channel being looked at.
  std::vector<VirtualChannelId> path;
  std::unordered_set<VirtualChannelId> seen;
  const std::function<bool(VirtualChannelId)> leads_back = [&](VirtualChannelId channel) {
    path.push_back(channel);
    const DeviceId device = graph.link_target(tables_.LinkOf(channel));
    for (const auto edge : boost::make_iterator_range(boost::out_edges(device, graph.graph()))) {
      const LinkId link = graph.link_of_edge(edge);
      for (uint32_t of = 0; of < tables_.ClassCountOf(link); ++of) {
        const VirtualChannelId next = tables_.ChannelOf(link, of);
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
