// SPDX-License-Identifier: GPL-2.0-only
// Checks of conservation: the counts of packets must agree with each other, and every account with
// its packets.
#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/link/link_packets.h"

namespace railyard {

uint64_t FabricNetwork::AccountBytes(LinkId id) {
  const IngressAccount& account = accounts_[FirstChannelOf(id)];
  if (!account.has_credits) buffers_.Settle(account.buffer());
  return account.bytes;
}

void FabricNetwork::CheckConservation() const {
  if (part_.has_absorbed()) {  // each part has checked itself
    part_.CheckAbsorbed();
    return;
  }
  std::vector<uint64_t> account_bytes(accounts_.size());
  std::vector<uint32_t> arrived(tables_.graph->device_count());  // packets, modulo 2^32
  std::vector<uint32_t> sent(tables_.graph->device_count());
  for (LinkId id{0}; id < tables_.links.size(); ++id) {
    const Link& link = tables_.links[id];
    uint32_t on_link = 0;
    ForEachPacketOn(tables_, delays_, id, [&](PacketId index, bool is_timed) {
      const Packet& packet = tables_.packets[index];
      ++on_link;
      if (is_timed) account_bytes[tables_.ChannelOn(packet)] += accounts_.CreditBytesOf(packet);
      if (packet.ingress == VirtualChannelId::kNone || (packet.flags & Packet::kCountedOut) != 0)
        return;
      account_bytes[packet.ingress] += packet.wire_bytes;
    });
    const uint64_t lost = states_.DroppedPackets(id);
    // The two ends of a link on the border are counted in two processes.
    SIM_CHECK(
        part_.IsOnBorder(id) || link.sent == static_cast<uint32_t>(link.packets + lost + on_link),
        fmt::format("packets on {}: {} were put on it, {} arrived, {} were lost, {} are there",
                    tables_.graph->link(id).name, link.sent, link.packets, lost, on_link));
    arrived[tables_.graph->link_target(id)] += static_cast<uint32_t>(link.packets);
    sent[tables_.graph->link_source(id)] += link.sent;
  }
  std::vector<uint32_t> made(tables_.graph->device_count());
  for (LinkId id{0}; id < reduction_.counted_links(); ++id) {
    made[tables_.graph->link_target(id)] += reduction_.CountersOf(id).packets;
  }
  for (DeviceId id{0}; id < tables_.graph->device_count(); ++id) {
    const DeviceKind kind = tables_.graph->device(id).kind;
    if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNvSwitch &&
        kind != DeviceKind::kPcieSwitch) {
      continue;
    }
    const uint64_t dropped = buffers_[buffers_.OfDevice(id)].dropped_packets;
    SIM_CHECK(
        arrived[id] + made[id] == sent[id] + static_cast<uint32_t>(dropped),
        fmt::format("packets at {}: {} came, {} (modulo 2^32) were made, {} were sent on, {} "
                    "dropped",
                    tables_.graph->device(id).name, arrived[id], made[id], sent[id], dropped));
  }
  std::vector<int64_t> pool_bytes(accounts_.pool_count());
  for (VirtualChannelId id{0}; id < accounts_.size(); ++id) {
    SIM_CHECK(accounts_[id].bytes == account_bytes[id],
              fmt::format("the account of {} holds {} B, its packets {} B", tables_.NameOf(id),
                          accounts_[id].bytes, account_bytes[id]));
    if (accounts_[id].has_credits) continue;
    pool_bytes[accounts_[id].buffer()] +=
        int64_t{accounts_[id].bytes} - buffers_.PauseOf(id).headroom_bytes;
  }
  for (BufferId id{0}; id < accounts_.pool_count(); ++id) {
    SIM_CHECK(accounts_.pool(id).bytes == pool_bytes[id],
              fmt::format("the buffer of {} holds {} B, its ports' accounts {} B",
                          tables_.graph->device(buffers_[id].device).name, accounts_.pool(id).bytes,
                          pool_bytes[id]));
  }
}

}  // namespace railyard
