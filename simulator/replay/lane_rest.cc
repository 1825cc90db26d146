// SPDX-License-Identifier: GPL-2.0-only
// The state of connections between programs. Messages are numbered modulo 256 and only differences
// count, so slots are walked from the oldest on.
#include <algorithm>
#include <bit>

#include "simulator/replay/lane_executor.h"
#include "simulator/units/mix64.h"

namespace railyard {

void LaneExecutor::Visit(StateArchive& archive) {
  archive.Constant(connections_.size());
  for (uint32_t id = 0; id < connections_.size(); ++id) VisitConnection(id, archive);
  for (int64_t& free_ps : proxy_free_ps_) archive.Instant(free_ps);
  archive.Constant(gpu_speeds_.size());
  for (const double speed : gpu_speeds_) archive.Constant(std::bit_cast<uint64_t>(speed));
  nvlink_.Visit(archive);
  rdma_.Visit(archive);
  striped_.Visit(archive);
  detours_.Visit(archive);
  aggregation_.Visit(archive);
}

void LaneExecutor::VisitGpus(std::span<const uint32_t> gpus, StateArchive& archive) {
  for (const uint32_t gpu : gpus) {
    for (const uint32_t id : nvlink_connections_[gpu]) VisitConnection(id, archive);
    archive.Constant(std::bit_cast<uint64_t>(SpeedOfGpu(gpu)));
  }
  nvlink_.VisitGpus(gpus, archive);
}

uint64_t LaneExecutor::IdentityOfGpus(std::span<const uint32_t> gpus) const {
  uint64_t identity = 0;
  const auto add = [&](uint64_t value) { identity = Mix64(identity ^ value); };
  for (const uint32_t gpu : gpus) {
    add(nvlink_connections_[gpu].size());
    for (const uint32_t id : nvlink_connections_[gpu]) add(LocalTieOf(id));
    for (const uint32_t flow : nvlink_.FlowsOf(gpu)) {
      add(LocalTieOf(nvlink_.FirstReceiverOf(flow)));
    }
  }
  return identity;
}

std::vector<uint32_t> LaneExecutor::ConnectionsAmong(std::span<const uint32_t> gpus) const {
  std::vector<uint32_t> among;
  for (const uint32_t gpu : gpus) {
    for (const uint32_t id : network_connections_[gpu]) {
      if (std::ranges::find(gpus, connections_[id].to_gpu) != gpus.end()) among.push_back(id);
    }
  }
  std::ranges::sort(among, {}, [this](uint32_t id) { return connections_[id].tie; });
  return among;
}

void LaneExecutor::VisitNics(std::span<const uint32_t> gpus, StateArchive& archive) {
  archive.Require(!is_socket_ && !nic_policy_ && SwitchOfNics(gpus).has_value());
  for (const uint32_t id : ConnectionsAmong(gpus)) {
    const Connection& connection = connections_[id];
    archive.Require(!connection.is_striped && !connection.is_detoured && !connection.is_relayed &&
                    !slots_[id].is_closed);
    VisitConnection(id, archive);
    rdma_.VisitQueuePair(connection.flow, archive);
  }
  for (const uint32_t gpu : gpus) {
    archive.Instant(proxy_free_ps_[gpu]);
    archive.Constant(std::bit_cast<uint64_t>(SpeedOfGpu(gpu)));
    rdma_.VisitPorts(NicOf(gpu), archive);
  }
  network_.VisitNicLinks(LinksOfNics(gpus), archive);
}

void LaneExecutor::VisitCountersOfNics(StateArchive& archive) {
  network_.VisitCounters(archive);
  rdma_.VisitCounters(archive);
}

// Ties are broken by numbers of what is in the group, so their order must be the same, too.
uint64_t LaneExecutor::IdentityOfNics(std::span<const uint32_t> gpus) const {
  uint64_t identity = gpus.size();
  const auto add = [&](uint64_t value) { identity = Mix64(identity ^ value); };
  const auto add_order = [&](std::vector<uint64_t> numbers) {
    std::vector<uint64_t> sorted = numbers;
    std::ranges::sort(sorted);
    for (const uint64_t number : numbers) {
      add(static_cast<uint64_t>(std::ranges::lower_bound(sorted, number) - sorted.begin()));
    }
  };
  std::vector<uint64_t> servers;
  std::vector<uint64_t> ports;
  for (const uint32_t gpu : gpus) {
    servers.push_back(TieOf(places_[gpu], 0, 0, 0));
    ports.push_back(rdma_.FirstPortOf(NicOf(gpu)));
    add(static_cast<uint64_t>(proxy_costs_[gpu].post_ps));
    add(static_cast<uint64_t>(proxy_costs_[gpu].arrival_ps));
    add(communicator_counts_[gpu]);
  }
  add_order(std::move(servers));
  add_order(std::move(ports));
  std::vector<uint64_t> queue_pairs;
  for (const uint32_t id : ConnectionsAmong(gpus)) {
    const Connection& connection = connections_[id];
    // In the order of ties already, which is nearly all of them that matters.
    add(static_cast<uint64_t>(std::ranges::find(gpus, connection.from_gpu) - gpus.begin()));
    add(static_cast<uint64_t>(std::ranges::find(gpus, connection.to_gpu) - gpus.begin()));
    add(connection.tie & kLocalTieMask & ~kGpuTieMask);
    queue_pairs.push_back(connection.flow);
  }
  add_order(std::move(queue_pairs));
  const std::vector<LinkId> links = LinksOfNics(gpus);
  add_order({links.begin(), links.end()});
  return identity;
}

std::vector<LinkId> LaneExecutor::LinksOfNics(std::span<const uint32_t> gpus) const {
  std::vector<LinkId> links;
  const auto add = [&](PathRef path) {
    for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
      const LinkId link = network_.LinkOfPath(path, hop);
      if (std::ranges::find(links, link) == links.end()) links.push_back(link);
    }
  };
  for (const uint32_t id : ConnectionsAmong(gpus)) {
    add(rdma_.DataPath(connections_[id].flow));
    add(rdma_.AckPath(connections_[id].flow));
  }
  return links;
}

std::optional<DeviceId> LaneExecutor::SwitchOfNics(std::span<const uint32_t> gpus) const {
  std::optional<DeviceId> common;
  for (const LinkId link : LinksOfNics(gpus)) {
    const DeviceId source = graph_.link_source(link);
    const DeviceId target = graph_.link_target(link);
    const auto is = [this](DeviceId device, DeviceKind kind) {
      return graph_.device(device).kind == kind;
    };
    const bool is_in_server = (is(source, DeviceKind::kGpu) && is(target, DeviceKind::kNic)) ||
                              (is(source, DeviceKind::kNic) && is(target, DeviceKind::kGpu));
    if (is_in_server) continue;
    const bool is_cable = (is(source, DeviceKind::kNic) && is(target, DeviceKind::kSwitch)) ||
                          (is(source, DeviceKind::kSwitch) && is(target, DeviceKind::kNic));
    const DeviceId at = is(source, DeviceKind::kSwitch) ? source : target;
    if (!is_cable || (common && *common != at)) return std::nullopt;
    common = at;
  }
  return common;
}

std::vector<uint32_t> LaneExecutor::AllConnectionsAmong(std::span<const uint32_t> gpus) const {
  std::vector<uint32_t> among = ConnectionsAmong(gpus);
  for (const uint32_t gpu : gpus) {
    among.insert(among.end(), nvlink_connections_[gpu].begin(), nvlink_connections_[gpu].end());
  }
  return among;
}

std::vector<LanePaths::Kept> LaneExecutor::PathsAmong(std::span<const uint32_t> gpus) {
  std::vector<LanePaths::Kept> kept;
  for (const uint32_t id : AllConnectionsAmong(gpus)) {
    const LanePaths::OfConnection& paths = PathsOf(id);
    kept.push_back({.freed = paths.freed});
    if (!paths.network) continue;
    kept.back().consumed = paths.network->consumed;
    kept.back().granted = paths.network->granted;
  }
  return kept;
}

void LaneExecutor::PutPathsAmong(std::span<const uint32_t> gpus,
                                 const std::vector<LanePaths::Kept>& kept) {
  const std::vector<uint32_t> among = AllConnectionsAmong(gpus);
  for (size_t i = 0; i < among.size(); ++i) {
    LanePaths::OfConnection& paths = PathsOf(among[i]);
    paths.freed = kept[i].freed;
    if (!paths.network) continue;
    paths.network->consumed = kept[i].consumed;
    paths.network->granted = kept[i].granted;
  }
}

std::vector<uint8_t> LaneExecutor::TakeTimersOfNics(std::span<const uint32_t> gpus) {
  std::vector<uint8_t> timers;
  for (const uint32_t id : ConnectionsAmong(gpus)) {
    timers.push_back(rdma_.TakeTimers(connections_[id].flow));
  }
  return timers;
}

void LaneExecutor::PutTimersOfNics(std::span<const uint32_t> gpus,
                                   const std::vector<uint8_t>& timers) {
  const std::vector<uint32_t> connections = ConnectionsAmong(gpus);
  for (size_t i = 0; i < connections.size(); ++i) {
    rdma_.PutTimers(connections_[connections[i]].flow, timers[i]);
  }
}

void LaneExecutor::VisitConnection(uint32_t id, StateArchive& archive) {
  const Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  if (slots.is_closed) return;
  const NetworkProgress& progress = slots.progress;
  archive.Require(slots.sender == kNone && slots.receiver == kNone &&
                  slots.delivered == slots.posted && slots.consumed == slots.posted);
  if (connection.network) {
    archive.Require(progress.staged == slots.posted && progress.sent == slots.posted &&
                    progress.completed == slots.posted && progress.granted == slots.posted &&
                    progress.clear_to_send == slots.posted && progress.queued == slots.posted);
  } else {
    // When the sender sees each slot free.
    for (uint32_t i = 0; i < kConnectionSlots; ++i) {
      archive.Instant(slots.time_ps[(slots.posted + i) % kConnectionSlots]);
    }
  }
  archive.Constant(connection.is_detoured ? 1 : 0);
  archive.Constant(connection.flow == kNone ? 1 : 0);  // groups are opened when first used
  archive.Count(taken_bytes_[id]);
}

}  // namespace railyard
