// SPDX-License-Identifier: GPL-2.0-only
// Ports in the general form: control and data wait, one packet is in service, and its departure is
// an event that starts the next.
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

// A port that changed its form with many waiting would time them all, and perhaps take it back at
// the next control packet or pause: it goes on event by event until few are left.
constexpr uint32_t kWaitingMax = 8;

}  // namespace

Port& FabricNetwork::PortOf(LinkId id) {
  uint32_t& port = port_of_link_[id];
  if (port == Packet::kNone) {
    port = static_cast<uint32_t>(ports_.size());
    ports_.emplace_back();
  }
  return ports_[port];
}

int64_t FabricNetwork::BacklogPs(LinkId id) const {
  const Link& link = links_[id];
  const int64_t timed_ps = std::max<int64_t>(0, link.busy_until_ps - engine_->NowPs());
  return IsShort(id) ? timed_ps : timed_ps + ports_[port_of_link_[id]].waiting_ps;
}

int64_t FabricNetwork::ServiceEndPs(LinkId id) const {
  const Link& link = links_[id];
  const int64_t now_ps = engine_->NowPs();
  if (!IsShort(id)) return std::max(now_ps, link.busy_until_ps);
  int64_t end_ps = now_ps;
  ForEachTimed(link, [&](uint32_t index) {
    const int64_t departure_ps = DeparturePs(packets_[index]);
    if (departure_ps > now_ps) end_ps = departure_ps;
  });
  return end_ps;
}

void FabricNetwork::Append(Port& port, uint32_t index) {
  Packet& packet = packets_[index];
  port.waiting_ps += TransmissionPs(packet.link, packet.wire_bytes);
  ++port.waiting_packets;
  if (ClassOf(packet.kind) == TrafficClass::kControl) {
    port.control.Append(packets_, index);
    return;
  }
  packet.arrival_ps = port.joined++;
  port.waiting_data_bytes += packet.wire_bytes;
  const uint32_t of = LosslessClassOf(packet);
  port.waiting_classes |= Port::BitOf(of);
  port.data[of].Append(packets_, index);
}

uint32_t FabricNetwork::PopControl(Port& port) {
  const uint32_t index = port.control.Pop(packets_);
  port.waiting_ps -= TransmissionPs(packets_[index].link, packets_[index].wire_bytes);
  --port.waiting_packets;
  return index;
}

uint32_t FabricNetwork::PopData(Port& port, uint32_t lossless_class) {
  DataQueue& queue = port.data[lossless_class];
  const uint32_t index = queue.Pop(packets_);
  if (queue.empty()) port.waiting_classes &= static_cast<uint8_t>(~Port::BitOf(lossless_class));
  const uint32_t wire_bytes = packets_[index].wire_bytes;
  port.waiting_ps -= TransmissionPs(packets_[index].link, wire_bytes);
  --port.waiting_packets;
  port.waiting_data_bytes -= wire_bytes;
  return index;
}

void FabricNetwork::LeaveShortForm(LinkId id) {
  Link& link = links_[id];
  Port& port = PortOf(id);
  const int64_t now_ps = engine_->NowPs();
  link.send_flags |= Link::kGeneralForm;
  leaving_.clear();
  ForEachTimed(link, [&](uint32_t index) {
    if (DeparturePs(packets_[index]) <= now_ps) {
      CountOut(packets_[index]);
    } else {
      leaving_.push_back(index);
    }
  });
  if (leaving_.empty()) return;
  // The first is in service, for it follows upon the one before or came when the port was free.
  link.last = leaving_.back();
  leaving_.pop_back();
  link.timed -= static_cast<uint32_t>(leaving_.size());
  link.busy_until_ps = DeparturePs(packets_[link.last]);
  port.is_serving = true;
  engine_->ScheduleFabric(link.busy_until_ps, event_order::kDeparture, id, id);
  // The others have not begun. The events of their arrivals find tombstones.
  for (auto index = leaving_.rbegin(); index != leaving_.rend(); ++index) {
    const uint32_t waiting = packets_.MoveAway(*index);
    CopyTelemetry(*index, waiting);
    const Packet& packet = packets_[waiting];
    if ((link.send_flags & Link::kNeedsCredit) != 0) {
      accounts_[ChannelOn(packet)].bytes -= CreditBytesOf(packet);
    }
    Append(port, waiting);
  }
}

bool FabricNetwork::MayReturn(LinkId id, const Port& port) const {
  if (form_ == PortForm::kGeneral || port.held_classes() != 0 ||
      port.waiting_packets > kWaitingMax || IsEventful(buffer_of_source_[id])) {
    return false;
  }
  if ((links_[id].send_flags & Link::kNeedsCredit) == 0) return true;
  // Nothing may lack credit before its turn.
  for (uint8_t left = port.waiting_classes; left != 0; left &= left - 1) {
    const VirtualChannelId channel = ChannelOf(id, std::countr_zero(left));
    if (accounts_[channel].bytes + port.waiting_data_bytes > accounts_[channel].credit_limit()) {
      return false;
    }
  }
  return true;
}

void FabricNetwork::ReturnToShortForm(LinkId id, Port& port) {
  Link& link = links_[id];
  link.send_flags &= static_cast<uint8_t>(~Link::kGeneralForm);
  while (!port.control.empty()) SendInShortForm(PopControl(port));
  while (port.waiting_classes != 0) {
    const uint32_t index = PopData(port, port.FirstOf(packets_, port.waiting_classes));
    if ((link.send_flags & Link::kNeedsCredit) != 0) {
      accounts_[ChannelOn(packets_[index])].bytes += packets_[index].wire_bytes;
    }
    SendInShortForm(index);
  }
}

void FabricNetwork::Enqueue(uint32_t index) {
  const LinkId id = packets_[index].link;
  Port& port = PortOf(id);
  Append(port, index);
  if (!port.is_serving) StartNext(id, port);
}

void FabricNetwork::StartNext(LinkId id, Port& port) {
  if (!port.control.empty()) {
    Start(id, port, PopControl(port));
    return;
  }
  for (;;) {
    const auto may_go = static_cast<uint8_t>(port.waiting_classes & ~port.held_classes());
    if (may_go == 0) return;
    const uint32_t of = port.FirstOf(packets_, may_go);
    if ((links_[id].send_flags & Link::kNeedsCredit) == 0 ||
        TakeCredit(ChannelOf(id, of), packets_[port.data[of].first].wire_bytes)) {
      Start(id, port, PopData(port, of));
      return;
    }
    port.starved_classes |= Port::BitOf(of);
    accounts_[ChannelOf(id, of)].is_waited_for = 1;
    BeginHold(id, port, of);
  }
}

void FabricNetwork::Start(LinkId id, Port& port, uint32_t index) {
  Link& link = links_[id];
  Packet& packet = packets_[index];
  ++counters_.general_hops;
  ++port.general_hops;
  port.is_serving = true;
  link.busy_until_ps = engine_->NowPs() + TransmissionPs(id, packet.wire_bytes);
  packet.arrival_ps = link.busy_until_ps + link.delay_ps;
  AppendTimed(link, index, packet);
  engine_->ScheduleFabric(link.busy_until_ps, event_order::kDeparture, id, id);
  engine_->ScheduleFabric(packet.arrival_ps, event_order::kArrival, id, index);
}

void FabricNetwork::HandleDeparture(void* self, uint32_t id) {
  auto& network = *static_cast<FabricNetwork*>(self);
  Port& port = network.PortOf(id);
  port.is_serving = false;
  network.CountOut(network.packets_[network.links_[id].last]);
  const uint32_t buffer = network.buffer_of_source_[id];
  if (!network.buffers_[buffer].xoff.empty()) network.SendXons(buffer);
  network.Resume(id, port);
}

void FabricNetwork::Resume(LinkId id, Port& port) {
  if (port.is_serving) return;
  if (MayReturn(id, port)) {
    ReturnToShortForm(id, port);
  } else {
    StartNext(id, port);
  }
}

}  // namespace railyard
