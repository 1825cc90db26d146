// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/fabric_part.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/link/link_packets.h"

namespace railyard {
namespace {

constexpr size_t kFetchedAhead = 8;  // links: most have nothing to collect

}  // namespace

void FabricPart::SetBorder(const std::vector<LinkId>& outgoing,
                           const std::vector<LinkId>& incoming) {
  outgoing_ = outgoing;
  kind_of_link_.assign(tables_.links.size(), 0);
  for (const LinkId link : incoming) kind_of_link_[link] = kIncoming;
  for (const LinkId link : outgoing) {
    kind_of_link_[link] = kOutgoing;
    tables_.links[link].arrival = LinkRecord::Arrival::kElsewhere;
  }
}

int64_t FabricPart::Collect(int64_t before_ps, std::vector<Crossing>& crossings) {
  crossings.insert(crossings.end(), frames_.begin(), frames_.end());
  frames_.clear();
  int64_t next_ps = INT64_MAX;
  for (size_t i = 0; i < outgoing_.size(); ++i) {
    const size_t ahead = std::min(i + kFetchedAhead, outgoing_.size() - 1);
    __builtin_prefetch(&tables_.links[outgoing_[ahead]]);
    const LinkId id = outgoing_[i];
    const LinkRecord& link = tables_.links[id];
    const size_t first = crossings.size();
    PacketId index = link.last;
    for (uint32_t left = link.timed; left > 0; --left) {
      Packet& packet = tables_.packets[index];
      if ((packet.flags & Packet::kCrossed) != 0) break;  // and so have those before it
      index = packet.next;
      const int64_t begin_ps =
          tables_.DeparturePs(packet) - tables_.TransmissionPs(id, packet.wire_bytes);
      if (begin_ps >= before_ps) {
        next_ps = std::min(next_ps, begin_ps);
        continue;
      }
      Crossing& crossing = crossings.emplace_back();
      crossing.packet = packet;
      crossing.packet.ingress = VirtualChannelId::kNone;  // its account is in this process
      crossing.packet.flags &= static_cast<uint8_t>(~Packet::kCountedOut);
      packet.flags |= Packet::kCrossed;
    }
    std::reverse(crossings.begin() + static_cast<ptrdiff_t>(first), crossings.end());
  }
  return next_ps;
}

void FabricPart::Take(const Crossing& crossing) {
  const int64_t time_ps = crossing.time_ps();
  if (crossing.is_pause_frame()) {
    const uint32_t id = crossing.packet.flow;
    tables_.engine->ScheduleFabric(time_ps, event_order::kPauseFrame, id, id);
    return;
  }
  const PacketId index = tables_.packets.Allocate();
  Packet& packet = tables_.packets[index];
  packet = crossing.packet;
  tables_.AppendTimed(tables_.links[packet.link], index, packet);
  tables_.engine->ScheduleFabric(time_ps, event_order::kArrival, packet.link, index);
}

void FabricPart::Leave(PacketId index) {
  const Packet& packet = tables_.packets[index];
  LinkRecord& link = tables_.links[packet.link];
  SIM_CHECK((packet.flags & Packet::kCrossed) != 0, "a packet that nobody takes");
  --link.packets;
  link.wire_bytes -= packet.wire_bytes;
  if (IsData(packet.kind)) {
    --tables_.counters.packet_hops;
    if ((packet.flags & Packet::kRetransmitted) != 0) {
      obstacle_ = "packets are sent again";
    } else {
      link.payload_bytes -= DataBytes(packet);
    }
  } else {
    --tables_.counters.control_hops;
  }
  ++arrivals_elsewhere_;
  tables_.packets.Free(index);
}

void FabricPart::LeaveFrame(PauseFrame frame, int64_t obeyed_ps) {
  frames_.push_back(
      Crossing::OfPauseFrame(obeyed_ps, tables_.LinkOf(frame.channel), frame.event_id()));
}

void FabricPart::NoteDrop(DropReason reason) {
  if (reason == DropReason::kOutOfSequence || reason == DropReason::kDuplicate) return;
  obstacle_ = fmt::format("packets are lost ({})", DropReasonName(reason));
}

std::vector<LinkTotals> FabricPart::Totals() const {
  std::vector<LinkTotals> totals;
  for (LinkId id{0}; id < tables_.links.size(); ++id) {
    const LinkRecord& link = tables_.links[id];
    if (link.sent == 0 && link.packets == 0) continue;
    LinkTotals& total = totals.emplace_back();
    total = {.link = id,
             .sent = link.sent,
             .payload_bytes = link.payload_bytes,
             .wire_bytes = link.wire_bytes,
             .packets = link.packets};
    if (ComesFromElsewhere(id)) continue;
    ForEachPacketOn(tables_, delays_, id, [&](PacketId, bool) { ++total.on_link; });
  }
  return totals;
}

uint64_t FabricPart::InFlightBytes() const {
  uint64_t bytes = tables_.packets.PayloadBytes();
  for (const LinkId id : outgoing_) {
    tables_.ForEachTimed(tables_.links[id], [&](PacketId index) {
      const Packet& packet = tables_.packets[index];
      const bool is_elsewhere = (packet.flags & Packet::kCrossed) != 0;
      if (is_elsewhere && IsData(packet.kind)) bytes -= DataBytes(packet);
    });
  }
  return bytes;
}

void FabricPart::Absorb(std::span<const LinkTotals> links, const NetworkCounters& counters,
                        uint64_t in_flight_bytes) {
  has_absorbed_ = true;
  absorbed_in_flight_bytes_ += in_flight_bytes;
  absorbed_on_link_.resize(tables_.links.size());
  for (const LinkTotals& total : links) {
    LinkRecord& link = tables_.links[total.link];
    link.sent += total.sent;
    link.payload_bytes += total.payload_bytes;
    link.wire_bytes += total.wire_bytes;
    link.packets += total.packets;
    absorbed_on_link_[total.link] += total.on_link;
  }
  tables_.counters.Add(counters);
}

void FabricPart::CheckAbsorbed() const {
  for (LinkId id{0}; id < tables_.links.size(); ++id) {
    const LinkRecord& link = tables_.links[id];
    const uint32_t on_link = absorbed_on_link_[id];
    SIM_CHECK(link.sent == static_cast<uint32_t>(link.packets + on_link),
              fmt::format("packets on {}: {} were put on it, {} arrived, {} are there",
                          tables_.graph->link(id).name, link.sent, link.packets, on_link));
  }
}

}  // namespace railyard
