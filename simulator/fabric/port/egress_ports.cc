// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/port/egress_ports.h"

#include <algorithm>
#include <bit>

#include "simulator/event_order/event_order.h"

namespace railyard {
namespace {

// A port that changed its form with many waiting would time them all, and perhaps take it back at
// the next control packet or pause: it goes on event by event until few are left.
constexpr uint32_t kWaitingMax = 8;

}  // namespace

void EgressPorts::Send(PacketId index) {
  const Packet& packet = tables_.packets[index];
  const LinkId id = packet.link;
  if (!tables_.IsShort(id)) {
    Port& port = tables_.PortOf(id);
    if (port.is_idle() && MayReturn(id, port)) ReturnToShortForm(id, port);
  }
  const bool is_data = ClassOf(packet.kind) == TrafficClass::kData;
  const bool needs_credit =
      is_data && (tables_.links[id].send_flags & LinkRecord::kNeedsCredit) != 0;
  if (tables_.IsShort(id)) {
    // The packets that wait may be data, which control overtakes.
    const bool is_fifo = is_data || !SomethingWaits(id);
    if (is_fifo &&
        (!needs_credit || accounts_.TakeCredit(tables_.ChannelOn(packet), packet.wire_bytes))) {
      SendInShortForm(index);
      return;
    }
    LeaveShortForm(id);
  }
  Port& port = tables_.PortOf(id);
  Append(port, index);
  if (!port.is_serving) StartNext(id, port);
}

bool EgressPorts::SomethingWaits(LinkId id) const {
  const LinkRecord& link = tables_.links[id];
  const int64_t backlog_ps = link.busy_until_ps - tables_.NowPs();
  return backlog_ps > 0 &&
         backlog_ps > tables_.TransmissionPs(id, tables_.packets[link.last].wire_bytes);
}

void EgressPorts::Append(Port& port, PacketId index) {
  Packet& packet = tables_.packets[index];
  port.waiting_ps += tables_.TransmissionPs(packet.link, packet.wire_bytes);
  ++port.waiting_packets;
  if (ClassOf(packet.kind) == TrafficClass::kControl) {
    port.control.Append(tables_.packets, index);
    return;
  }
  packet.arrival_ps = port.joined++;
  port.waiting_data_bytes += packet.wire_bytes;
  const uint32_t of = tables_.LosslessClassOf(packet);
  port.waiting_classes |= Port::BitOf(of);
  port.data[of].Append(tables_.packets, index);
}

PacketId EgressPorts::PopControl(Port& port) {
  const PacketId index = port.control.Pop(tables_.packets);
  const Packet& packet = tables_.packets[index];
  port.waiting_ps -= tables_.TransmissionPs(packet.link, packet.wire_bytes);
  --port.waiting_packets;
  return index;
}

PacketId EgressPorts::PopData(Port& port, uint32_t lossless_class) {
  DataQueue& queue = port.data[lossless_class];
  const PacketId index = queue.Pop(tables_.packets);
  if (queue.empty()) port.waiting_classes &= static_cast<uint8_t>(~Port::BitOf(lossless_class));
  const Packet& packet = tables_.packets[index];
  port.waiting_ps -= tables_.TransmissionPs(packet.link, packet.wire_bytes);
  --port.waiting_packets;
  port.waiting_data_bytes -= packet.wire_bytes;
  return index;
}

void EgressPorts::LeaveShortForm(LinkId id) {
  LinkRecord& link = tables_.links[id];
  Port& port = tables_.PortOf(id);
  const int64_t now_ps = tables_.NowPs();
  link.send_flags |= LinkRecord::kGeneralForm;
  leaving_.clear();
  tables_.ForEachTimed(link, [&](PacketId index) {
    Packet& packet = tables_.packets[index];
    if (tables_.DeparturePs(packet) <= now_ps) {
      buffers_.CountOut(packet);
    } else {
      leaving_.push_back(index);
    }
  });
  if (leaving_.empty()) return;
  // The first is in service, for it follows upon the one before or came when the port was free.
  link.last = leaving_.back();
  leaving_.pop_back();
  link.timed -= static_cast<uint32_t>(leaving_.size());
  link.busy_until_ps = tables_.DeparturePs(tables_.packets[link.last]);
  port.is_serving = true;
  tables_.engine->ScheduleFabric(link.busy_until_ps, event_order::kDeparture, id, id);
  // The others have not begun. The events of their arrivals find tombstones.
  for (auto index = leaving_.rbegin(); index != leaving_.rend(); ++index) {
    const PacketId waiting = tables_.packets.MoveAway(*index);
    telemetry_.Copy(*index, waiting);
    const Packet& packet = tables_.packets[waiting];
    if ((link.send_flags & LinkRecord::kNeedsCredit) != 0) {
      accounts_[tables_.ChannelOn(packet)].bytes -= accounts_.CreditBytesOf(packet);
    }
    Append(port, waiting);
  }
}

void EgressPorts::LeaveShortForms(BufferId buffer) {
  for (const LinkId egress : buffers_[buffer].egress) {
    if (tables_.IsShort(egress) && tables_.links[egress].busy_until_ps > tables_.NowPs()) {
      LeaveShortForm(egress);
    }
  }
}

bool EgressPorts::MayReturn(LinkId id, const Port& port) const {
  if (tables_.settings.form == PortForm::kGeneral || port.held_classes() != 0 ||
      port.waiting_packets > kWaitingMax || buffers_.IsEventful(buffers_.OfSource(id))) {
    return false;
  }
  if ((tables_.links[id].send_flags & LinkRecord::kNeedsCredit) == 0) return true;
  // No packet may lack credit before its turn.
  for (uint8_t left = port.waiting_classes; left != 0; left &= left - 1) {
    const VirtualChannelId channel =
        tables_.ChannelOf(id, static_cast<uint32_t>(std::countr_zero(left)));
    if (accounts_[channel].bytes + port.waiting_data_bytes > accounts_[channel].credit_limit()) {
      return false;
    }
  }
  return true;
}

void EgressPorts::ReturnToShortForm(LinkId id, Port& port) {
  LinkRecord& link = tables_.links[id];
  link.send_flags &= static_cast<uint8_t>(~LinkRecord::kGeneralForm);
  while (!port.control.empty()) SendInShortForm(PopControl(port));
  while (port.waiting_classes != 0) {
    const PacketId index = PopData(port, port.FirstOf(tables_.packets, port.waiting_classes));
    if ((link.send_flags & LinkRecord::kNeedsCredit) != 0) {
      const Packet& packet = tables_.packets[index];
      accounts_[tables_.ChannelOn(packet)].bytes += packet.wire_bytes;
    }
    SendInShortForm(index);
  }
}

void EgressPorts::StartNext(LinkId id, Port& port) {
  if (!port.control.empty()) {
    Start(id, port, PopControl(port));
    return;
  }
  for (;;) {
    const auto may_go = static_cast<uint8_t>(port.waiting_classes & ~port.held_classes());
    if (may_go == 0) return;
    const uint32_t of = port.FirstOf(tables_.packets, may_go);
    const VirtualChannelId channel = tables_.ChannelOf(id, of);
    if ((tables_.links[id].send_flags & LinkRecord::kNeedsCredit) == 0 ||
        accounts_.TakeCredit(channel, tables_.packets[port.data[of].first].wire_bytes)) {
      Start(id, port, PopData(port, of));
      return;
    }
    port.starved_classes |= Port::BitOf(of);
    accounts_[channel].is_waited_for = 1;
    BeginHold(channel);
  }
}

void EgressPorts::Start(LinkId id, Port& port, PacketId index) {
  LinkRecord& link = tables_.links[id];
  Packet& packet = tables_.packets[index];
  ++tables_.counters.general_hops;
  ++port.general_hops;
  port.is_serving = true;
  link.busy_until_ps = tables_.NowPs() + tables_.TransmissionPs(id, packet.wire_bytes);
  packet.arrival_ps = link.busy_until_ps + link.delay_ps;
  tables_.AppendTimed(link, index, packet);
  tables_.engine->ScheduleFabric(link.busy_until_ps, event_order::kDeparture, id, id);
  tables_.engine->ScheduleFabric(packet.arrival_ps, event_order::kArrival, id, index);
}

void EgressPorts::FinishService(LinkId id) {
  tables_.PortOf(id).is_serving = false;
  buffers_.CountOut(tables_.packets[tables_.links[id].last]);
}

void EgressPorts::Resume(LinkId id) {
  Port& port = tables_.PortOf(id);
  if (port.is_serving) return;
  if (MayReturn(id, port)) {
    ReturnToShortForm(id, port);
  } else {
    StartNext(id, port);
  }
}

void EgressPorts::RetimeWaiting(LinkId id) {
  Port& port = tables_.PortOf(id);
  port.waiting_ps = 0;
  tables_.ForEachWaiting(port, [&](PacketId index) {
    port.waiting_ps += tables_.TransmissionPs(id, tables_.packets[index].wire_bytes);
  });
}

bool EgressPorts::Obey(PauseFrame frame) {
  const LinkId id = tables_.LinkOf(frame.channel);
  const uint32_t lossless_class = tables_.LosslessClassOf(frame.channel);
  Port& port = tables_.PortOf(id);
  const uint8_t bit = Port::BitOf(lossless_class);
  if (frame.xoff) {
    port.paused_by_frame |= bit;
  } else {
    port.paused_by_frame &= static_cast<uint8_t>(~bit);
  }
  return !port.is_in_storm && SetPaused(id, lossless_class, frame.xoff);
}

bool EgressPorts::SetStorm(LinkId id, bool storms) {
  Port& port = tables_.PortOf(id);
  if (port.is_in_storm == storms) return false;
  port.is_in_storm = storms;
  bool is_released = false;
  for (uint32_t of = 0; of < tables_.ClassCountOf(id); ++of) {
    if ((port.paused_by_frame & Port::BitOf(of)) != 0) continue;
    is_released = SetPaused(id, of, storms) || is_released;
  }
  return is_released;
}

bool EgressPorts::SetPaused(LinkId id, uint32_t lossless_class, bool paused) {
  Port& port = tables_.PortOf(id);
  const uint8_t bit = Port::BitOf(lossless_class);
  if (paused) {
    if (tables_.IsShort(id)) LeaveShortForm(id);
    port.paused_classes |= bit;
    BeginHold(tables_.ChannelOf(id, lossless_class));
    return false;
  }
  port.paused_classes &= static_cast<uint8_t>(~bit);
  const int64_t paused_ps = tables_.NowPs() - port.data[lossless_class].held_since_ps;
  port.paused_ps += paused_ps;
  tables_.counters.pfc_pause_ps += paused_ps;
  return EndHold(id);
}

int64_t EgressPorts::OpenPausePs(const Port& port) const {
  int64_t paused_ps = 0;
  for (uint8_t left = port.paused_classes; left != 0; left &= static_cast<uint8_t>(left - 1)) {
    paused_ps +=
        tables_.NowPs() - port.data[static_cast<size_t>(std::countr_zero(left))].held_since_ps;
  }
  return paused_ps;
}

bool EgressPorts::WakeForCredit(VirtualChannelId channel) {
  const LinkId id = tables_.LinkOf(channel);
  const uint32_t lossless_class = tables_.LosslessClassOf(channel);
  Port& port = tables_.PortOf(id);
  const PacketId first = port.data[lossless_class].first;
  if (!accounts_.HasCredit(channel, tables_.packets[first].wire_bytes)) return false;
  port.starved_classes &= static_cast<uint8_t>(~Port::BitOf(lossless_class));
  accounts_[channel].is_waited_for = 0;
  return EndHold(id);
}

void EgressPorts::BeginHold(VirtualChannelId channel) {
  if (const auto check_ps = holds_.Begin(channel)) {
    tables_.engine->ScheduleFabric(*check_ps, event_order::kHoldCheck, channel, channel);
  }
}

// Ends one of the port's holds.
bool EgressPorts::EndHold(LinkId id) {
  tables_.is_held[id] = tables_.PortOf(id).held_classes() != 0 ? 1 : 0;
  Resume(id);
  if (tables_.is_held[id] != 0) return false;
  const DeviceKind source = tables_.graph->device(tables_.graph->link_source(id)).kind;
  return source == DeviceKind::kNic || source == DeviceKind::kGpu;
}

}  // namespace railyard
