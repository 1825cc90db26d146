// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/connections/nic_groups.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_set>

#include "simulator/execution/connections/ties.h"
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/mix64.h"

namespace railyard {

std::vector<ConnectionId> NicGroups::AmongOnNetwork(std::span<const GpuIndex> gpus) const {
  const std::unordered_set<GpuIndex> members(gpus.begin(), gpus.end());
  std::vector<ConnectionId> among;
  for (const GpuIndex gpu : gpus) {
    std::ranges::copy_if(
        table_.network_connections(gpu), std::back_inserter(among),
        [&](ConnectionId id) { return members.contains(table_.connection(id).to_gpu); });
  }
  std::ranges::sort(among, {}, [this](ConnectionId id) { return table_.connection(id).tie; });
  return among;
}

NicGroup NicGroups::GroupOf(std::span<const GpuIndex> gpus,
                            std::span<const CommunicatorIndex> communicators,
                            const std::function<uint64_t(GpuIndex gpu)>& identity_of_gpu) const {
  NicGroup group{.gpus = {gpus.begin(), gpus.end()}};
  for (const ConnectionId id : AmongOnNetwork(gpus)) {
    const bool is_own =
        std::ranges::find(communicators, table_.connection(id).communicator) != communicators.end();
    (is_own ? group.connections : group.others).push_back(id);
  }
  group.version = table_.network_version();
  const bool are_plain = std::ranges::all_of(group.connections, [this](ConnectionId id) {
    const Connection& connection = table_.connection(id);
    return table_.IsQueuePair(connection) && !connection.is_relayed();
  });
  if (!are_plain) return group;
  std::vector<FlowId> queue_pairs;
  for (const ConnectionId id : group.connections) queue_pairs.push_back(table_.connection(id).flow);
  group.links = AllLinksOf(queue_pairs);
  group.at = SwitchOf(group.links);
  group.identity = IdentityOf(group, identity_of_gpu);
  return group;
}

NicGroup NicGroups::Around(const NicGroup& group, GpuIndex gpu) const {
  NicGroup around{.gpus = {gpu}, .at = group.at};
  const auto add = [&](const std::vector<ConnectionId>& from, std::vector<ConnectionId>& to) {
    std::ranges::copy_if(from, std::back_inserter(to), [&](ConnectionId id) {
      const Connection& connection = table_.connection(id);
      return connection.from_gpu == gpu || connection.to_gpu == gpu;
    });
  };
  add(group.connections, around.connections);
  add(group.others, around.others);
  const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
  std::ranges::copy_if(group.links, std::back_inserter(around.links), [&](LinkId link) {
    return graph_.link_source(link) == nic || graph_.link_target(link) == nic;
  });
  return around;
}

std::vector<GpuIndex> NicGroups::PeersOf(const NicGroup& group, GpuIndex gpu) const {
  std::vector<GpuIndex> peers;
  for (const ConnectionId id : Around(group, gpu).connections) {
    const Connection& connection = table_.connection(id);
    const GpuIndex peer = connection.from_gpu == gpu ? connection.to_gpu : connection.from_gpu;
    if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
  }
  return peers;
}

std::vector<LinkId> NicGroups::AllLinksOf(std::span<const FlowId> queue_pairs) const {
  std::vector<LinkId> links;
  std::unordered_set<LinkId> seen;
  for (const FlowId queue_pair : queue_pairs) {
    for (const LinkId link : stack_.queue_pairs()->AllLinksOf(queue_pair)) {
      if (seen.insert(link).second) links.push_back(link);
    }
  }
  return links;
}

// Returns nothing if there are several switches, or other devices in between.
std::optional<DeviceId> NicGroups::SwitchOf(std::span<const LinkId> links) const {
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

// Ties are broken by numbers of the group's objects, so equal groups must also have the same order
// of these numbers. The connections are already in that order.
uint64_t NicGroups::IdentityOf(const NicGroup& group,
                               const std::function<uint64_t(GpuIndex gpu)>& identity_of_gpu) const {
  uint64_t identity = group.gpus.size();
  const auto add = [&](uint64_t value) { identity = Mix64(identity ^ value); };
  const auto add_order = [&](const std::vector<uint64_t>& numbers) {
    std::vector<uint64_t> sorted = numbers;
    std::ranges::sort(sorted);
    for (const uint64_t number : numbers) {
      add(static_cast<uint64_t>(std::ranges::lower_bound(sorted, number) - sorted.begin()));
    }
  };
  const auto place_of = [&](GpuIndex gpu) {
    return static_cast<uint64_t>(std::ranges::find(group.gpus, gpu) - group.gpus.begin());
  };
  std::vector<uint64_t> servers;
  std::vector<uint64_t> ports;
  for (const GpuIndex gpu : group.gpus) {
    servers.push_back(table_.TieOf(gpu, 0, 0, 0));
    const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
    ports.push_back(stack_.queue_pairs()->nic_ports().FirstPortOf(nic));
    add(identity_of_gpu(gpu));
  }
  add_order(servers);
  add_order(ports);
  std::vector<uint64_t> queue_pairs;
  for (const ConnectionId id : group.connections) {
    const Connection& connection = table_.connection(id);
    add(place_of(connection.from_gpu));
    add(place_of(connection.to_gpu));
    add(connection.tie & kLocalTieMask & ~kGpuTieMask);
    queue_pairs.push_back(connection.flow);
  }
  add_order(queue_pairs);
  add_order({group.links.begin(), group.links.end()});
  return identity;
}

std::vector<ConnectionId> NicGroups::AllAmong(std::span<const GpuIndex> gpus) const {
  std::vector<ConnectionId> among = AmongOnNetwork(gpus);
  for (const GpuIndex gpu : gpus) {
    const std::span<const ConnectionId> in_server = table_.server_connections(gpu);
    among.insert(among.end(), in_server.begin(), in_server.end());
  }
  return among;
}

uint64_t NicGroups::IdentityOfGpus(std::span<const GpuIndex> gpus) const {
  uint64_t identity = 0;
  const auto add = [&](uint64_t value) { identity = Mix64(identity ^ value); };
  for (const GpuIndex gpu : gpus) {
    const std::span<const ConnectionId> in_server = table_.server_connections(gpu);
    add(in_server.size());
    for (const ConnectionId id : in_server) add(table_.connection(id).tie & kLocalTieMask);
    for (const FlowId flow : load_store_.FlowsOf(gpu)) add(table_.LocalTieOf(flow));
  }
  return identity;
}

}  // namespace railyard
