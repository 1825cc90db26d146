// SPDX-License-Identifier: GPL-2.0-only
// Construction, and the hot path: a packet's hop in the short form.
#include "simulator/fabric/fabric_network.h"

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/conservation.h"

namespace railyard {

void FabricNetwork::Build(const FabricGraph& graph, FabricSimulatorImpl& engine) {
  tables_.Attach(graph, engine);
  switches_.resize(graph.device_count());
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (graph.device(id).kind == DeviceKind::kSwitch) switches_[id] = ns3::CreateObject<Switch>();
  }
  Configure();
  const EventState state = {.owner = &this->state()};
  engine.Register(event_order::kArrival, {.name = "arrivals", .state = state},
                  &FabricNetwork::HandleArrival, this);
  engine.Register(event_order::kDeparture, {.name = "departures", .state = state},
                  &FabricNetwork::HandleDeparture, this);
  engine.Register(event_order::kPauseFrame, {.name = "pause frames", .state = state},
                  &FabricNetwork::HandlePauseFrame, this);
  engine.Register(event_order::kHoldCheck,
                  {.name = "hold checks", .pending = PendingMeans::kNothing, .state = state},
                  &FabricNetwork::HandleHoldCheck, this);
  engine.Register(event_order::kLateArrival, {.name = "late arrivals", .state = state},
                  &FabricNetwork::HandleLateArrival, this);
  FetchFlowsAhead({});
}

void FabricNetwork::FetchFlowsAhead(const TimingWheel::PrefetchTable& flows) {
  const TimingWheel::PrefetchTable links = {&links_base_, sizeof(Link)};
  tables_.engine->SetPrefetch(event_order::kArrival,
                              {.records = {tables_.packets.base(), sizeof(Packet)},
                               .fields = {{{.offset = offsetof(Packet, link), .table = links},
                                           {.offset = offsetof(Packet, next_link), .table = links},
                                           {.offset = offsetof(Packet, flow), .table = flows}}}});
}

void FabricNetwork::Inject(PacketId index) {
  Packet& packet = tables_.packets[index];
  if (IsData(packet.kind)) {
    ++tables_.counters.packets;
    tables_.counters.injected_bytes += DataBytes(packet);
    if (telemetry_.is_enabled()) telemetry_.Clear(index);
  }
  if (packet.hop_count == 0) [[unlikely]] {
    Drop(index, DropReason::kNoRoute, LinkId::kNone);
    return;
  }
  packet.next_link = paths_.LinkAt(packet.path);
  Transmit(index);
}

void FabricNetwork::InjectOver(PacketId index, LinkId first, LinkId second) {
  Packet& packet = tables_.packets[index];
  ++tables_.counters.packets;
  tables_.counters.injected_bytes += DataBytes(packet);
  if (telemetry_.is_enabled()) telemetry_.Clear(index);
  packet.next_link = second;
  ForwardOn(index, first);
}

void FabricNetwork::Transmit(PacketId index) { Forward(index); }

inline void FabricNetwork::Forward(PacketId index) {
  Packet& packet = tables_.packets[index];
  const LinkId id = packet.next_link;
  // Read a hop ahead of its use, for it is seldom in the cache.
  const uint32_t next_hop = packet.hop + 1u;
  if (next_hop < packet.hop_count) packet.next_link = paths_.LinkAt(packet.path + next_hop);
  ForwardOn(index, id);
}

inline void FabricNetwork::ForwardOn(PacketId index, LinkId id) {
  Packet& packet = tables_.packets[index];
  packet.link = id;
  Link& link = tables_.links[id];
  const bool is_control = ClassOf(packet.kind) == TrafficClass::kControl;
  if ((link.send_flags & ~Link::kNeedsCredit) != 0 || is_control) [[unlikely]] {
    TransmitSpecially(index);
    return;
  }
  if (!accounts_.Enter(packet)) [[unlikely]] {
    if (AdmitToLossless(index)) SendSpecially(index);
    return;
  }
  if (link.send_flags != 0) {
    if (!accounts_.TakeCreditAhead(FirstChannelOf(id), packet.wire_bytes)) [[unlikely]] {
      SendSpecially(index);
      return;
    }
  }
  ++link.sent;
  const int64_t backlog_ps = link.busy_until_ps - tables_.engine->NowPs();
  if (backlog_ps >> kMarkUnitShift >= int64_t{link.mark_above}) [[unlikely]] {
    MarkAbove(packet, backlog_ps);
  }
  tables_.SendInShortForm(index, packet, link);
}

void FabricNetwork::HandleArrival(void* self, uint32_t index) {
  auto& network = *static_cast<FabricNetwork*>(self);
  network.Arrive(PacketId{index});
}

// The packet, crossing its link, is no more in the device the link comes from. May move packets.
inline void FabricNetwork::LeaveDevice(PacketId index) {
  Packet& packet = tables_.packets[index];
  if (packet.ingress == VirtualChannelId::kNone) return;
  IngressAccount& account = accounts_[packet.ingress];
  if (account.has_credits) {
    ReturnCredit(packet.ingress, packet.wire_bytes);
  } else if ((packet.flags & Packet::kCountedOut) == 0) [[likely]] {
    // No bytes are in headroom: otherwise the device would be eventful and the packet already
    // counted.
    accounts_.Leave(account, packet.wire_bytes);
  } else {
    packet.flags &= static_cast<uint8_t>(~Packet::kCountedOut);
  }
}

inline void FabricNetwork::TakeIn(PacketId index) {
  Packet& packet = tables_.packets[index];
  const LinkId id = packet.link;
  Link& link = tables_.links[id];
  packet.ingress = FirstChannelOf(id);
  ++packet.hop;
  ++link.packets;
  link.wire_bytes += packet.wire_bytes;
  if (IsData(packet.kind)) {
    ++tables_.counters.packet_hops;
    if ((packet.flags & Packet::kRetransmitted) == 0) [[likely]] {
      link.payload_bytes += DataBytes(packet);
    } else {
      states_.CountRetransmitted(id, DataBytes(packet));
    }
  } else {
    ++tables_.counters.control_hops;
  }
  switch (link.arrival) {
    case Link::Arrival::kForward:
      Forward(index);
      break;
    case Link::Arrival::kCombining:
      ArriveAtCombiningSwitch(index);
      break;
    case Link::Arrival::kGpu:
      SinkOf(index).OnPacketInMemory(index);
      break;
    case Link::Arrival::kGpuOfMesh:
      if (packet.hop == packet.hop_count) {
        SinkOf(index).OnPacketInMemory(index);
        break;
      }
      packet.ingress = VirtualChannelId::kNone;  // in memory it is in no link's buffer
      Forward(index);
      break;
    case Link::Arrival::kHostBridge: {
      if (packet.hop < packet.hop_count) {
        Forward(index);
        break;
      }
      const uint32_t credit_bytes = accounts_.CreditBytesOf(packet);
      SinkOf(index).OnPacketInMemory(index);
      if (credit_bytes != 0) ReturnCredit(FirstChannelOf(id), credit_bytes);
      break;
    }
    case Link::Arrival::kElsewhere:
      part_.Leave(index);
      break;
    case Link::Arrival::kLossyNic:
      if (!FindsRoomAtNic(index)) break;
      [[fallthrough]];
    case Link::Arrival::kNic: {
      const uint32_t credit_bytes = accounts_.CreditBytesOf(packet);
      was_sent_on_ = false;
      SinkOf(index).OnPacketAtNic(index);
      if (credit_bytes != 0 && !was_sent_on_) ReturnCredit(FirstChannelOf(id), credit_bytes);
      break;
    }
  }
}

void FabricNetwork::TakeInLate(PacketId index) { TakeIn(index); }

inline void FabricNetwork::Arrive(PacketId index) {
  if ((tables_.packets[index].flags & Packet::kTombstone) != 0) [[unlikely]] {
    tables_.packets.FreeTombstone(index);
    return;
  }
  const LinkId id = tables_.packets[index].link;
  Link& link = tables_.links[id];
  --link.timed;
  if ((link.arrival_flags & Link::kFromLossyBuffer) != 0) [[unlikely]]
    buffers_.LeaveLossyBuffer(tables_.packets[index]);
  LeaveDevice(index);
  constexpr uint8_t kSpecial = Link::kObserved | Link::kMayLose | Link::kBalanced | Link::kDelayed;
  if ((link.arrival_flags & kSpecial) != 0 && !ArriveSpecially(index)) [[unlikely]]
    return;
  TakeIn(index);
}

void FabricNetwork::SetRouting(const EcmpRouting& routing) {
  load_balancer_ = LoadBalancer(routing,
                                {.policy = tables_.settings.load_balancing,
                                 .flowlet_gap_ps = tables_.settings.flowlet_gap_ps,
                                 .seed = tables_.settings.seed},
                                [this](LinkId link) { return BacklogPs(link); });
}

void FabricNetwork::Drop(PacketId index, DropReason reason, LinkId link) {
  const Packet& packet = tables_.packets[index];
  const auto slot = static_cast<size_t>(reason);
  ++tables_.counters.dropped_packets[slot];
  if (IsData(packet.kind)) tables_.counters.dropped_bytes[slot] += DataBytes(packet);
  packet_dropped_({tables_.engine->NowPs(), &packet, reason, link});
  if (part_.has_border()) part_.NoteDrop(reason);
  SinkOf(index).OnPacketDropped(index, reason, link);
  FreePacket(index);
}

uint32_t FabricNetwork::LinksToNic(PathRef path) const {
  uint32_t links = path.hop_count;
  while (links > 0 && tables_.graph->link(paths_.LinkOf(path, links - 1)).tier == Tier::kHost)
    --links;
  return links;
}

int64_t FabricNetwork::PathLatencyPs(PathRef path, uint32_t wire_bytes) const {
  int64_t latency_ps = 0;
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    const LinkId id = paths_.LinkOf(path, hop);
    latency_ps += tables_.links[id].delay_ps + TransmissionPs(id, wire_bytes);
  }
  return latency_ps;
}

void FabricNetwork::CheckConservation() const {
  railyard::CheckConservation({.tables = tables_,
                               .accounts = accounts_,
                               .buffers = buffers_,
                               .states = states_,
                               .delays = delays_,
                               .reduction = reduction_,
                               .part = part_});
}

LinkCounters FabricNetwork::CountersOfLink(LinkId id) const {
  flows_.Settle();
  const Link& link = tables_.links[id];
  LinkCounters counters;
  counters.payload_bytes = link.payload_bytes;
  counters.packets = link.packets;
  counters.retransmitted_bytes = states_.RetransmittedBytes(id);
  counters.dropped_packets = states_.DroppedPackets(id);
  counters.header_bytes = link.wire_bytes - link.payload_bytes - counters.retransmitted_bytes;
  if (const Port* const port = tables_.FindPort(id)) {
    counters.paused_ps = port->paused_ps + ports_.OpenPausePs(*port);
  }
  return counters;
}

}  // namespace railyard
