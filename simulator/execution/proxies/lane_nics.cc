// SPDX-License-Identifier: GPL-2.0-only
// Groups of NICs (nic_group.h): what they consist of, their state, and what is kept of their paths.
#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_set>

#include "simulator/execution/lanes/lane_executor.h"
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/mix64.h"

namespace railyard {

std::vector<uint32_t> LaneExecutor::ConnectionsAmong(std::span<const uint32_t> gpus) const {
  const std::unordered_set<uint32_t> members(gpus.begin(), gpus.end());
  std::vector<uint32_t> among;
  for (const uint32_t gpu : gpus) {
    std::ranges::copy_if(network_connections_[gpu], std::back_inserter(among),
                         [&](uint32_t id) { return members.contains(connections_[id].to_gpu); });
  }
  std::ranges::sort(among, {}, [this](uint32_t id) { return connections_[id].tie; });
  return among;
}

NicGroup LaneExecutor::NicGroupOf(std::span<const uint32_t> gpus) const {
  NicGroup group{.gpus = {gpus.begin(), gpus.end()}, .connections = ConnectionsAmong(gpus)};
  group.version = network_version_;
  const bool are_plain = std::ranges::all_of(group.connections, [this](uint32_t id) {
    const Connection& connection = connections_[id];
    return IsQueuePair(connection) && !connection.is_relayed;
  });
  if (!are_plain) return group;
  std::vector<uint32_t> queue_pairs;
  for (const uint32_t id : group.connections) queue_pairs.push_back(connections_[id].flow);
  group.links = AllLinksOf(queue_pairs);
  group.at = SwitchOf(group.links);
  group.identity = IdentityOf(group);
  return group;
}

bool LaneExecutor::IsQueuePair(const Connection& connection) const {
  return connection.transport != nullptr && connection.transport == stack_->queue_pairs();
}

std::vector<LinkId> LaneExecutor::AllLinksOf(std::span<const uint32_t> queue_pairs) const {
  std::vector<LinkId> links;
  std::unordered_set<LinkId> seen;
  for (const uint32_t queue_pair : queue_pairs) {
    for (const LinkId link : this->queue_pairs().AllLinksOf(queue_pair)) {
      if (seen.insert(link).second) links.push_back(link);
    }
  }
  return links;
}

// None: there are several, or other devices in between.
std::optional<DeviceId> LaneExecutor::SwitchOf(std::span<const LinkId> links) const {
  std::optional<DeviceId> common;
  for (const LinkId link : links) {
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

// Ties are broken by numbers of what is in the group, so their order must be the same, too. The
// connections are in that order already.
uint64_t LaneExecutor::IdentityOf(const NicGroup& group) const {
  uint64_t identity = group.gpus.size();
  const auto add = [&](uint64_t value) { identity = Mix64(identity ^ value); };
  const auto add_order = [&](const std::vector<uint64_t>& numbers) {
    std::vector<uint64_t> sorted = numbers;
    std::ranges::sort(sorted);
    for (const uint64_t number : numbers) {
      add(static_cast<uint64_t>(std::ranges::lower_bound(sorted, number) - sorted.begin()));
    }
  };
  const auto place_of = [&](uint32_t gpu) {
    return static_cast<uint64_t>(std::ranges::find(group.gpus, gpu) - group.gpus.begin());
  };
  std::vector<uint64_t> servers;
  std::vector<uint64_t> ports;
  for (const uint32_t gpu : group.gpus) {
    servers.push_back(TieOf(places_[gpu], 0, 0, 0));
    ports.push_back(queue_pairs().FirstPortOf(NicOf(gpu)));
    add(static_cast<uint64_t>(proxy_costs_[gpu].post_ps));
    add(static_cast<uint64_t>(proxy_costs_[gpu].arrival_ps));
  }
  add_order(servers);
  add_order(ports);
  std::vector<uint64_t> queue_pairs;
  for (const uint32_t id : group.connections) {
    const Connection& connection = connections_[id];
    add(place_of(connection.from_gpu));
    add(place_of(connection.to_gpu));
    add(connection.tie & kLocalTieMask & ~kGpuTieMask);
    queue_pairs.push_back(connection.flow);
  }
  add_order(queue_pairs);
  add_order({group.links.begin(), group.links.end()});
  return identity;
}

void LaneExecutor::VisitNics(const NicGroup& group, StateArchive& archive) {
  archive.Require(group.at.has_value());
  if (!group.at) return;
  for (const uint32_t id : group.connections) {
    VisitConnection(id, archive);
    queue_pairs().VisitQueuePair(connections_[id].flow, archive);
  }
  for (const uint32_t gpu : group.gpus) {
    proxies_.Visit(gpu, archive);
    archive.Constant(std::bit_cast<uint64_t>(SpeedOfGpu(gpu)));
    queue_pairs().VisitPorts(NicOf(gpu), archive);
  }
  network_.VisitNicLinks(group.links, archive);
}

void LaneExecutor::VisitCountersOfNics(StateArchive& archive) {
  network_.VisitCounters(archive);
  queue_pairs().VisitCounters(archive);
}

std::vector<uint8_t> LaneExecutor::TakeTimers(const NicGroup& group) {
  std::vector<uint8_t> timers;
  for (const uint32_t id : group.connections) {
    timers.push_back(queue_pairs().TakeTimers(connections_[id].flow));
  }
  return timers;
}

void LaneExecutor::PutTimers(const NicGroup& group, const std::vector<uint8_t>& timers) {
  for (size_t i = 0; i < timers.size(); ++i) {
    queue_pairs().PutTimers(connections_[group.connections[i]].flow, timers[i]);
  }
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

}  // namespace railyard
