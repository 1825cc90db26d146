// SPDX-License-Identifier: GPL-2.0-only
// Nothing is lost without a reason: the counts that packets left behind agree with each other, and
// every account with the packets it is of.
#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

uint64_t FabricNetwork::AccountBytes(LinkId id) {
  if (!accounts_[id].has_credits) Settle(accounts_[id].buffer());
  return accounts_[id].bytes;
}

void FabricNetwork::ForEachPacketOn(LinkId id,
                                    const std::function<void(uint32_t, bool)>& visit) const {
  ForEachTimed(links_[id], [&](uint32_t index) { visit(index, true); });
  if ((links_[id].arrival_flags & Link::kDelayed) != 0) {
    for (const LatePacket& late : cold_links_.at(id).late) visit(late.packet, true);
  }
  if (IsShort(id)) return;
  const Port& port = ports_[port_of_link_[id]];
  ForEachWaiting(port, [&](uint32_t index) { visit(index, false); });
}

void FabricNetwork::CheckConservation() const {
  std::vector<uint64_t> account_bytes(accounts_.size());
  std::vector<uint32_t> arrived(graph_->device_count());  // packets, modulo 2^32
  std::vector<uint32_t> sent(graph_->device_count());
  for (LinkId id = 0; id < links_.size(); ++id) {
    const Link& link = links_[id];
    uint32_t on_link = 0;
    ForEachPacketOn(id, [&](uint32_t index, bool is_timed) {
      const Packet& packet = packets_[index];
      ++on_link;
      if (is_timed) account_bytes[ChannelOn(packet)] += CreditBytesOf(packet);
      if (packet.ingress == Packet::kNone || (packet.flags & Packet::kCountedOut) != 0) return;
      account_bytes[packet.ingress] += packet.wire_bytes;
    });
    const auto cold = cold_links_.find(id);
    const uint64_t lost = cold == cold_links_.end() ? 0 : cold->second.dropped_packets;
    SIM_CHECK(
        link.sent == static_cast<uint32_t>(link.packets + lost + on_link),
        fmt::format("packets on {}: {} were put on it, {} arrived, {} were lost, {} are there",
                    graph_->link(id).name, link.sent, link.packets, lost, on_link));
    arrived[graph_->link_target(id)] += static_cast<uint32_t>(link.packets);
    sent[graph_->link_source(id)] += link.sent;
  }
  std::vector<uint32_t> made(graph_->device_count());
  for (LinkId id = 0; id < in_switch_.size(); ++id) {
    made[graph_->link_target(id)] += in_switch_[id].packets;
  }
  for (DeviceId id = 0; id < graph_->device_count(); ++id) {
    const DeviceKind kind = graph_->device(id).kind;
    if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNvSwitch &&
        kind != DeviceKind::kPcieSwitch) {
      continue;
    }
    const uint64_t dropped = buffers_[buffer_of_device_[id]].dropped_packets;
    SIM_CHECK(arrived[id] + made[id] == sent[id] + static_cast<uint32_t>(dropped),
              fmt::format("packets at {}: {} came, {} (modulo 2^32) were made, {} were sent on, {} "
                          "dropped",
                          graph_->device(id).name, arrived[id], made[id], sent[id], dropped));
  }
  std::vector<int64_t> pool_bytes(pools_.size());
  for (VirtualChannelId id = 0; id < accounts_.size(); ++id) {
    SIM_CHECK(accounts_[id].bytes == account_bytes[id],
              fmt::format("the account of {} holds {} B, its packets {} B", NameOf(id),
                          accounts_[id].bytes, account_bytes[id]));
    if (accounts_[id].has_credits) continue;
    pool_bytes[accounts_[id].buffer()] += int64_t{accounts_[id].bytes} - pauses_[id].headroom_bytes;
  }
  for (size_t i = 0; i < pools_.size(); ++i) {
    SIM_CHECK(pools_[i].bytes == pool_bytes[i],
              fmt::format("the buffer of {} holds {} B, its ports' accounts {} B",
                          graph_->device(buffers_[i].device).name, pools_[i].bytes, pool_bytes[i]));
  }
}

}  // namespace railyard
