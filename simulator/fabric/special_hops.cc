// SPDX-License-Identifier: GPL-2.0-only
// Hops on which something is decided or counted besides: losses and extra delays, taps, room in
// buffers, pauses and credits, classes, marks and telemetry. The parts of the network decide; here
// what they decided is done.
#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

bool FabricNetwork::ArriveSpecially(PacketId index) {
  const Packet& packet = tables_.packets[index];
  const LinkId id = packet.link;
  const uint8_t flags = tables_.links[id].arrival_flags;
  const auto loss = (flags & Link::kMayLose) != 0 ? states_.LossOf(packet) : std::nullopt;
  if ((flags & Link::kObserved) != 0) taps_.Observe(packet, loss);
  if (loss) {
    Lose(index, *loss);
    return false;
  }
  if ((flags & Link::kDelayed) != 0 && IsHeldBack(index)) return false;
  return (flags & Link::kBalanced) == 0 || ChooseNextLink(index);
}

bool FabricNetwork::ChooseNextLink(PacketId index) {
  Packet& packet = tables_.packets[index];
  if (packet.kind != PacketKind::kNetworkData) return true;
  const uint32_t to_nic = LinksToNic({packet.path, packet.hop_count});
  // The path's last link does not begin at a switch that is only on another path to the NIC.
  const bool is_last = to_nic - packet.hop == 2;
  if (is_last && tables_.settings.ports_have_addresses &&
      tables_.graph->link_source(packet.next_link) == tables_.graph->link_target(packet.link)) {
    return true;
  }
  const DeviceId nic = tables_.graph->link_source(paths_.LinkAt(packet.path + to_nic));
  const LinkId next =
      load_balancer_.Choose(tables_.graph->link_target(packet.link), nic, to_nic - packet.hop - 1u,
                            packet, tables_.engine->NowPs());
  if (next == LinkId::kNone) {
    Lose(index, DropReason::kNoRoute);
    return false;
  }
  packet.next_link = next;
  return true;
}

void FabricNetwork::TransmitSpecially(PacketId index) {
  Packet& packet = tables_.packets[index];
  const bool drops = (tables_.links[packet.link].send_flags & Link::kTailDrop) != 0;
  if (ClassOf(packet.kind) == TrafficClass::kControl) {
    packet.ingress = VirtualChannelId::kNone;  // in no account from here on
  } else {
    if ((tables_.links[packet.link].send_flags & Link::kClassed) != 0) AssignClass(packet);
    if (drops && !AdmitToLossy(index)) return;
    if (!accounts_.Enter(tables_.packets[index]) && !AdmitToLossless(index)) return;
  }
  SendSpecially(index);
}

void FabricNetwork::SendSpecially(PacketId index) {
  const LinkId id = tables_.packets[index].link;
  Link& link = tables_.links[id];
  ++link.sent;
  const int64_t backlog_ps = tables_.BacklogPs(id);
  if ((link.send_flags & Link::kTelemetry) != 0) telemetry_.Stamp(index, backlog_ps);
  if (backlog_ps >> kMarkUnitShift >= int64_t{link.mark_above}) {
    MarkAbove(tables_.packets[index], backlog_ps);
  }
  ports_.Send(index);
}

// The virtual channel it came by is still known as that of class 0, the class it came in by `tag`.
void FabricNetwork::AssignClass(Packet& packet) {
  const auto class_before = static_cast<uint8_t>(packet.tag);
  const bool was_sent_here = packet.ingress == VirtualChannelId::kNone;
  const LinkId before = was_sent_here ? LinkId::kNone : tables_.LinkOf(packet.ingress);
  if (!was_sent_here) packet.ingress = tables_.ChannelOf(before, class_before);
  const bool is_balanced = tables_.settings.load_balancing != LoadBalancing::kEcmp;
  if (is_balanced && packet.kind == PacketKind::kNetworkData && !was_sent_here) {
    packet.tag = tables_.classes->Next(before, class_before, packet.link);
  } else {
    packet.tag = paths_.ClassAt(packet.path + packet.hop);
  }
}

void FabricNetwork::MarkAbove(Packet& packet, int64_t backlog_ps) {
  if (marking_.Mark(packet, backlog_ps)) ecn_marked_({tables_.NowPs(), &packet, packet.link});
}

void FabricNetwork::ArriveAtCombiningSwitch(PacketId index) {
  const InNetworkReduction::Outcome outcome = reduction_.Arrive(index);
  if (outcome.taken != PacketId::kNone) {
    const Packet& packet = tables_.packets[outcome.taken];
    const VirtualChannelId channel = FirstChannelOf(packet.link);
    const uint32_t credit_bytes = accounts_.CreditBytesOf(packet);
    FreePacket(outcome.taken);
    if (credit_bytes != 0) ReturnCredit(channel, credit_bytes);
  }
  for (const PacketId leaving : outcome.sent_on) Transmit(leaving);
}

bool FabricNetwork::AdmitToLossless(PacketId index) {
  const VirtualChannelId ingress = tables_.packets[index].ingress;
  const LinkId egress = tables_.packets[index].link;
  const SharedBuffers::Admission admission = buffers_.AdmitToLossless(tables_.packets[index]);
  if (!admission.is_kept) {
    Drop(index, DropReason::kHeadroomFull, tables_.LinkOf(ingress));
    return false;
  }
  if (admission.becomes_eventful) ports_.LeaveShortForms(accounts_[ingress].buffer());
  if (admission.sends_xoff) SendPauseFrame({.channel = ingress, .xoff = true});
  if (admission.is_eventful && tables_.IsShort(egress)) ports_.LeaveShortForm(egress);
  return true;
}

bool FabricNetwork::AdmitToLossy(PacketId index) {
  const LinkId egress = tables_.packets[index].link;
  const SharedBuffers::Admission admission = buffers_.AdmitToLossy(tables_.packets[index]);
  if (!admission.is_kept) {
    Drop(index, DropReason::kBufferFull, egress);
    return false;
  }
  if (admission.becomes_eventful) ports_.LeaveShortForms(buffers_.OfSource(egress));
  if (admission.is_eventful && tables_.IsShort(egress)) ports_.LeaveShortForm(egress);
  return true;
}

bool FabricNetwork::FindsRoomAtNic(PacketId index) {
  const Packet& packet = tables_.packets[index];
  if (packet.hop == packet.hop_count || ClassOf(packet.kind) == TrafficClass::kControl) return true;
  const LinkId egress = packet.next_link;
  const SharedBuffers::Admission admission = buffers_.FindLossyRoom(egress, packet.wire_bytes);
  if (!admission.is_kept) {
    Drop(index, DropReason::kBufferFull, egress);
    return false;
  }
  if (admission.becomes_eventful) ports_.LeaveShortForms(buffers_.OfSource(egress));
  return true;
}

void FabricNetwork::SendPauseFrame(PauseFrame frame) {
  const int64_t obeyed_ps = pause_frames_.Send(frame);
  if (part_.ComesFromElsewhere(tables_.LinkOf(frame.channel))) {
    part_.LeaveFrame(frame, obeyed_ps);
  } else {
    const uint32_t id = frame.event_id();
    tables_.engine->ScheduleFabric(obeyed_ps, event_order::kPauseFrame, id, id);
  }
  pause_sent_({tables_.NowPs(), tables_.LinkOf(frame.channel), frame.xoff});
}

void FabricNetwork::HandleDeparture(void* self, uint32_t target) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const LinkId id{target};
  network.ports_.FinishService(id);
  const BufferId buffer = network.buffers_.OfSource(id);
  if (!network.buffers_[buffer].xoff.empty()) {
    network.buffers_.ReleaseXoffs(buffer, [&](VirtualChannelId ingress) {
      network.SendPauseFrame({.channel = ingress, .xoff = false});
    });
  }
  network.ports_.Resume(id);
}

void FabricNetwork::HandlePauseFrame(void* self, uint32_t id) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const PauseFrame frame = PauseFrame::OfEvent(id);
  if (network.ports_.Obey(frame)) network.NotifyReleased(network.tables_.LinkOf(frame.channel));
}

void FabricNetwork::SetPauseStorm(LinkId id, bool storms) {
  if (ports_.SetStorm(id, storms)) NotifyReleased(id);
}

int64_t FabricNetwork::PausedPs() const {
  int64_t paused_ps = tables_.counters.pfc_pause_ps;
  for (const Port& port : tables_.ports) paused_ps += ports_.OpenPausePs(port);
  return paused_ps;
}

void FabricNetwork::WakeForCredit(VirtualChannelId channel) {
  if (ports_.WakeForCredit(channel)) NotifyReleased(tables_.LinkOf(channel));
}

void FabricNetwork::NotifyReleased(LinkId link) {
  for (auto sink = sinks_.begin(); sink != sinks_.end(); ++sink) {
    const bool is_notified = std::find(sinks_.begin(), sink, *sink) != sink;
    if (*sink != nullptr && !is_notified) (*sink)->OnLinkReleased(link);
  }
}

void FabricNetwork::HandleHoldCheck(void* self, uint32_t target) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const VirtualChannelId channel{target};
  if (const auto again_ps = network.holds_.Check(channel)) {
    network.tables_.engine->ScheduleFabric(*again_ps, event_order::kHoldCheck, channel, channel);
  }
}

void FabricNetwork::SetDelayFilter(LinkId id, DelayFilter extra_delay_ps) {
  tables_.links[id].arrival_flags |= Link::kDelayed;
  delays_.LineOf(id).SetFilter(std::move(extra_delay_ps));
}

bool FabricNetwork::IsHeldBack(PacketId index) {
  Packet& packet = tables_.packets[index];
  const auto hold = delays_.LineOf(packet.link).Take(index, packet, tables_.NowPs());
  if (!hold) return false;
  if (hold->is_first_of_instant) {
    tables_.engine->ScheduleFabric(hold->release_ps, event_order::kLateArrival, packet.link,
                                   packet.link);
  }
  packet.ingress = VirtualChannelId::kNone;  // it has left the device it came from
  return true;
}

void FabricNetwork::HandleLateArrival(void* self, uint32_t target) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const LinkId id{target};
  DelayLine& line = network.delays_.LineOf(id);
  while (const auto index = line.PopDue(network.tables_.NowPs())) {
    const bool is_balanced = (network.tables_.links[id].arrival_flags & Link::kBalanced) != 0;
    if (is_balanced && !network.ChooseNextLink(*index)) continue;
    network.TakeInLate(*index);
  }
}

void FabricNetwork::SetLinkUp(LinkId id, bool up) {
  if (states_.SetUp(id, up)) link_state_changed_({tables_.NowPs(), id, up});
}

void FabricNetwork::SetLinkRate(LinkId id, uint64_t rate_bps) {
  if (tables_.rates_bps[id] == rate_bps) return;
  if (tables_.IsShort(id)) ports_.LeaveShortForm(id);
  states_.SetRate(id, rate_bps);
  flows_.OnRateChanged(id, rate_bps);
  marking_.SetThreshold(id);
  ports_.RetimeWaiting(id);
  ports_.Resume(id);
}

void FabricNetwork::Lose(PacketId index, DropReason reason) {
  const Packet& packet = tables_.packets[index];
  const LinkId id = packet.link;
  states_.CountDropped(id);
  const uint32_t credit_bytes = accounts_.CreditBytesOf(packet);
  const VirtualChannelId channel = tables_.ChannelOn(packet);
  Drop(index, reason, id);
  if (credit_bytes != 0) ReturnCredit(channel, credit_bytes);
}

}  // namespace railyard
