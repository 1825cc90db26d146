// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/conservation.h"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/link/link_packets.h"

namespace railyard {
namespace {

// Holds counts of packets by device, modulo 2^32.
struct DevicePackets {
  std::vector<uint32_t> arrived;
  std::vector<uint32_t> sent;
};

// Adds the bytes of the packets on a link to their accounts. Returns the number of the packets.
uint32_t AddPacketsOn(LinkId id, const CountingObjects& network,
                      std::vector<uint64_t>& account_bytes) {
  const FabricTables& tables = network.tables;
  uint32_t on_link = 0;
  ForEachPacketOn(tables, network.delays, id, [&](PacketId index, bool is_timed) {
    const Packet& packet = tables.packets[index];
    ++on_link;
    if (is_timed) {
      account_bytes[tables.ChannelOn(packet)] += network.accounts.CreditBytesOf(packet);
    }
    if (packet.ingress == VirtualChannelId::kNone || (packet.flags & Packet::kCountedOut) != 0)
      return;
    account_bytes[packet.ingress] += packet.wire_bytes;
  });
  return on_link;
}

DevicePackets CheckLinks(const CountingObjects& network, std::vector<uint64_t>& account_bytes) {
  const FabricGraph& graph = *network.tables.graph;
  DevicePackets packets{.arrived = std::vector<uint32_t>(graph.device_count()),
                        .sent = std::vector<uint32_t>(graph.device_count())};
  for (LinkId id{0}; id < network.tables.links.size(); ++id) {
    const LinkRecord& link = network.tables.links[id];
    const uint32_t on_link = AddPacketsOn(id, network, account_bytes);
    const uint64_t lost = network.states.DroppedPackets(id);
    // The two ends of a link on the border are counted in two processes.
    SIM_CHECK(
        network.part.IsOnBorder(id) ||
            link.sent == static_cast<uint32_t>(link.packets + lost + on_link),
        fmt::format("packets on {}: {} were put on it, {} arrived, {} were lost, {} are there",
                    graph.link(id).name, link.sent, link.packets, lost, on_link));
    packets.arrived[graph.link_target(id)] += static_cast<uint32_t>(link.packets);
    packets.sent[graph.link_source(id)] += link.sent;
  }
  return packets;
}

void CheckSwitches(const CountingObjects& network, const DevicePackets& packets) {
  const FabricGraph& graph = *network.tables.graph;
  std::vector<uint32_t> made(graph.device_count());
  for (LinkId id{0}; id < network.reduction.counted_links(); ++id) {
    made[graph.link_target(id)] += network.reduction.CountersOf(id).packets;
  }
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    const DeviceKind kind = graph.device(id).kind;
    if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNvSwitch &&
        kind != DeviceKind::kPcieSwitch) {
      continue;
    }
    const uint64_t dropped = network.buffers[network.buffers.OfDevice(id)].dropped_packets;
    SIM_CHECK(packets.arrived[id] + made[id] == packets.sent[id] + static_cast<uint32_t>(dropped),
              fmt::format("packets at {}: {} came, {} (modulo 2^32) were made, {} were sent on, {} "
                          "dropped",
                          graph.device(id).name, packets.arrived[id], made[id], packets.sent[id],
                          dropped));
  }
}

void CheckAccounts(const CountingObjects& network, const std::vector<uint64_t>& account_bytes) {
  const ChannelAccounts& accounts = network.accounts;
  std::vector<int64_t> pool_bytes(accounts.pool_count());
  for (VirtualChannelId id{0}; id < accounts.size(); ++id) {
    SIM_CHECK(accounts[id].bytes == account_bytes[id],
              fmt::format("the account of {} holds {} B, its packets {} B",
                          network.tables.NameOf(id), accounts[id].bytes, account_bytes[id]));
    if (accounts[id].has_credits) continue;
    pool_bytes[accounts[id].buffer()] +=
        int64_t{accounts[id].bytes} - network.buffers.PauseOf(id).headroom_bytes;
  }
  for (BufferId id{0}; id < accounts.pool_count(); ++id) {
    SIM_CHECK(accounts.pool(id).bytes == pool_bytes[id],
              fmt::format("the buffer of {} holds {} B, its ports' accounts {} B",
                          network.tables.graph->device(network.buffers[id].device).name,
                          accounts.pool(id).bytes, pool_bytes[id]));
  }
}

}  // namespace

void CheckConservation(const CountingObjects& network) {
  if (network.part.has_absorbed()) {  // each part has checked itself
    network.part.CheckAbsorbed();
    return;
  }
  std::vector<uint64_t> account_bytes(network.accounts.size());
  const DevicePackets packets = CheckLinks(network, account_bytes);
  CheckSwitches(network, packets);
  CheckAccounts(network, account_bytes);
}

}  // namespace railyard
