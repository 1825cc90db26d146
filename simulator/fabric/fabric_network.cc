// SPDX-License-Identifier: GPL-2.0-only
// Construction, and the hot path: a packet's hop in the short form.
#include "simulator/fabric/fabric_network.h"

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/units/mix64.h"

namespace railyard {

const char* DropReasonName(DropReason reason) {
  switch (reason) {
    case DropReason::kLinkDown:
      return "LINK_DOWN";
    case DropReason::kNoRoute:
      return "NO_ROUTE";
    case DropReason::kOutOfSequence:
      return "OUT_OF_SEQUENCE";
    case DropReason::kDuplicate:
      return "DUPLICATE";
    case DropReason::kBufferFull:
      return "BUFFER_FULL";
    case DropReason::kHeadroomFull:
      return "HEADROOM_FULL";
    case DropReason::kBitError:
      return "BIT_ERROR";
    case DropReason::kQueuePairError:
      return "QUEUE_PAIR_ERROR";
  }
  return "";
}

uint64_t NetworkCounters::dropped_data_bytes() const {
  uint64_t sum = 0;
  for (const uint64_t bytes : dropped_bytes) sum += bytes;
  return sum;
}

void FabricNetwork::Build(const FabricGraph& graph, FabricSimulatorImpl& engine) {
  graph_ = &graph;
  classes_.emplace(graph);
  engine_ = &engine;
  switches_.resize(graph.device_count());
  for (DeviceId id = 0; id < graph.device_count(); ++id) {
    if (graph.device(id).kind == DeviceKind::kSwitch) switches_[id] = ns3::CreateObject<Switch>();
  }
  Configure();
  engine.Register(event_order::kArrival, {.name = "arrivals"}, &FabricNetwork::HandleArrival, this);
  engine.Register(event_order::kDeparture, {.name = "departures"}, &FabricNetwork::HandleDeparture,
                  this);
  engine.Register(event_order::kPauseFrame, {.name = "pause frames"},
                  &FabricNetwork::HandlePauseFrame, this);
  engine.Register(event_order::kHoldCheck,
                  {.name = "hold checks", .pending = PendingMeans::kNothing},
                  &FabricNetwork::HandleHoldCheck, this);
  engine.Register(event_order::kLateArrival, {.name = "late arrivals"},
                  &FabricNetwork::HandleLateArrival, this);
  FetchFlowsAhead({});
}

void FabricNetwork::FetchFlowsAhead(const TimingWheel::PrefetchTable& flows) {
  const TimingWheel::PrefetchTable links = {&links_base_, sizeof(Link)};
  engine_->SetPrefetch(event_order::kArrival,
                       {.records = {packets_.base(), sizeof(Packet)},
                        .fields = {{{.offset = offsetof(Packet, link), .table = links},
                                    {.offset = offsetof(Packet, next_link), .table = links},
                                    {.offset = offsetof(Packet, flow), .table = flows}}}});
}

PathRef FabricNetwork::AddPath(const std::vector<LinkId>& links,
                               std::optional<uint32_t> detour_hop) {
  SIM_CHECK(links.size() <= UINT8_MAX, "a path of more than 255 links");
  const PathRef path{static_cast<uint32_t>(paths_.size()), static_cast<uint8_t>(links.size())};
  paths_.insert(paths_.end(), links.begin(), links.end());
  if (classes_->count() > 1) {
    const std::vector<uint8_t> classes = classes_->OfPath(links, detour_hop);
    path_classes_.insert(path_classes_.end(), classes.begin(), classes.end());
  }
  return path;
}

void FabricNetwork::Inject(uint32_t index) {
  Packet& packet = packets_[index];
  if (IsData(packet.kind)) {
    ++counters_.packets;
    counters_.injected_bytes += DataBytes(packet);
    if (telemetry_enabled_) ClearTelemetry(index);
  }
  if (packet.hop_count == 0) [[unlikely]] {
    Drop(index, DropReason::kNoRoute, UINT32_MAX);
    return;
  }
  packet.next_link = paths_[packet.path];
  Transmit(index);
}

int64_t FabricNetwork::LearnTransmission(LinkId id, uint32_t wire_bytes) {
  Link& link = links_[id];
  const int64_t transmission_ps = TransmissionPs(id, wire_bytes);
  if (wire_bytes > link.usual_wire_bytes && transmission_ps <= UINT32_MAX) {
    link.usual_wire_bytes = static_cast<uint16_t>(wire_bytes);
    link.usual_transmission_ps = static_cast<uint32_t>(transmission_ps);
  }
  return transmission_ps;
}

// True when nothing had to be decided. Else the port may be in the general form by now, packets may
// have moved, and this one may be gone.
inline bool FabricNetwork::EntersCalmly(const Packet& packet) {
  if (packet.ingress == Packet::kNone) return true;
  IngressAccount& account = accounts_[packet.ingress];
  if (account.has_credits) return true;
  account.bytes += packet.wire_bytes;
  Pool& pool = pools_[account.buffer()];
  pool.bytes += packet.wire_bytes;
  return pool.bytes <= pool.calm_bytes;
}

void FabricNetwork::InjectOver(uint32_t index, LinkId first, LinkId second) {
  Packet& packet = packets_[index];
  ++counters_.packets;
  counters_.injected_bytes += DataBytes(packet);
  if (telemetry_enabled_) ClearTelemetry(index);
  packet.next_link = second;
  ForwardOn(index, first);
}

void FabricNetwork::Transmit(uint32_t index) { Forward(index); }

inline void FabricNetwork::Forward(uint32_t index) {
  Packet& packet = packets_[index];
  const LinkId id = packet.next_link;
  // Read a hop ahead of its use, for it is seldom in the cache.
  const uint32_t next_hop = packet.hop + 1u;
  if (next_hop < packet.hop_count) packet.next_link = paths_[packet.path + next_hop];
  ForwardOn(index, id);
}

inline void FabricNetwork::ForwardOn(uint32_t index, LinkId id) {
  Packet& packet = packets_[index];
  packet.link = id;
  Link& link = links_[id];
  const bool is_control = ClassOf(packet.kind) == TrafficClass::kControl;
  if ((link.send_flags & ~Link::kNeedsCredit) != 0 || is_control) [[unlikely]] {
    TransmitSpecially(index);
    return;
  }
  if (!EntersCalmly(packet)) [[unlikely]] {
    if (AdmitToLossless(index)) SendSpecially(index);
    return;
  }
  if (link.send_flags != 0) {
    // Everything timed counts as sent: if that leaves room there is room when it is this one's
    // turn.
    IngressAccount& account = accounts_[id];
    const uint32_t bytes = account.bytes + packet.wire_bytes;
    if (bytes > account.credit_limit()) [[unlikely]] {
      SendSpecially(index);
      return;
    }
    account.bytes = bytes;
  }
  ++link.sent;
  const int64_t backlog_ps = link.busy_until_ps - engine_->NowPs();
  if (backlog_ps >> kMarkUnitShift >= int64_t{link.mark_above}) [[unlikely]] {
    MarkAbove(packet, backlog_ps);
  }
  SendInShortForm(index, packet, link);
}

void FabricNetwork::TransmitSpecially(uint32_t index) {
  Packet& packet = packets_[index];
  const bool drops = (links_[packet.link].send_flags & Link::kTailDrop) != 0;
  if (ClassOf(packet.kind) == TrafficClass::kControl) {
    packet.ingress = Packet::kNone;  // in no account from here on
  } else {
    if ((links_[packet.link].send_flags & Link::kClassed) != 0) AssignClass(packet);
    if (drops && !AdmitToLossy(index)) return;
    if (!EntersCalmly(packets_[index]) && !AdmitToLossless(index)) return;
  }
  SendSpecially(index);
}

void FabricNetwork::SendSpecially(uint32_t index) {
  const Packet& packet = packets_[index];
  const LinkId id = packet.link;
  Link& link = links_[id];
  ++link.sent;
  const int64_t backlog_ps = BacklogPs(id);
  if ((link.send_flags & Link::kTelemetry) != 0) StampTelemetry(index, backlog_ps);
  if (backlog_ps >> kMarkUnitShift >= int64_t{link.mark_above})
    MarkAbove(packets_[index], backlog_ps);
  if (!IsShort(id)) {
    Port& port = PortOf(id);
    if (port.is_idle() && MayReturn(id, port)) ReturnToShortForm(id, port);
  }
  const bool is_data = ClassOf(packet.kind) == TrafficClass::kData;
  const bool needs_credit = is_data && (link.send_flags & Link::kNeedsCredit) != 0;
  if (IsShort(id)) {
    // Whoever waits may be data, which control overtakes.
    const bool is_fifo = is_data || !SomethingWaits(id);
    if (is_fifo && (!needs_credit || TakeCredit(ChannelOn(packet), packet.wire_bytes))) {
      SendInShortForm(index);
      return;
    }
    LeaveShortForm(id);
  }
  Enqueue(index);
}

bool FabricNetwork::SomethingWaits(LinkId id) const {
  const Link& link = links_[id];
  const int64_t backlog_ps = link.busy_until_ps - engine_->NowPs();
  return backlog_ps > 0 && backlog_ps > TransmissionPs(id, packets_[link.last].wire_bytes);
}

void FabricNetwork::HandleArrival(void* self, uint32_t index) {
  auto& network = *static_cast<FabricNetwork*>(self);
  network.Arrive(index);
}

// The packet, crossing its link, is no more in the device the link comes from. May move packets.
inline void FabricNetwork::LeaveDevice(uint32_t index) {
  Packet& packet = packets_[index];
  if (packet.ingress == Packet::kNone) return;
  IngressAccount& account = accounts_[packet.ingress];
  if (account.has_credits) {
    ReturnCredit(packet.ingress, packet.wire_bytes);
  } else if ((packet.flags & Packet::kCountedOut) == 0) [[likely]] {
    // Nothing is in headroom: the device would be eventful, and the packet counted out before.
    account.bytes -= packet.wire_bytes;
    pools_[account.buffer()].bytes -= packet.wire_bytes;
  } else {
    packet.flags &= static_cast<uint8_t>(~Packet::kCountedOut);
  }
}

inline void FabricNetwork::TakeIn(uint32_t index) {
  Packet& packet = packets_[index];
  const LinkId id = packet.link;
  Link& link = links_[id];
  packet.ingress = id;
  ++packet.hop;
  ++link.packets;
  link.wire_bytes += packet.wire_bytes;
  if (IsData(packet.kind)) {
    ++counters_.packet_hops;
    if ((packet.flags & Packet::kRetransmitted) == 0) [[likely]] {
      link.payload_bytes += DataBytes(packet);
    } else {
      cold_links_[id].retransmitted_bytes += DataBytes(packet);
    }
  } else {
    ++counters_.control_hops;
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
      packet.ingress = Packet::kNone;  // in memory it is in no link's buffer
      Forward(index);
      break;
    case Link::Arrival::kHostBridge: {
      if (packet.hop < packet.hop_count) {
        Forward(index);
        break;
      }
      const uint32_t credit_bytes = CreditBytesOf(packet);
      SinkOf(index).OnPacketInMemory(index);
      if (credit_bytes != 0) ReturnCredit(id, credit_bytes);
      break;
    }
    case Link::Arrival::kLossyNic:
      if (!FindsRoomAtNic(index)) break;
      [[fallthrough]];
    case Link::Arrival::kNic: {
      const uint32_t credit_bytes = CreditBytesOf(packet);
      was_sent_on_ = false;
      SinkOf(index).OnPacketAtNic(index);
      if (credit_bytes != 0 && !was_sent_on_) ReturnCredit(id, credit_bytes);
      break;
    }
  }
}

void FabricNetwork::TakeInLate(uint32_t index) { TakeIn(index); }

inline void FabricNetwork::Arrive(uint32_t index) {
  if ((packets_[index].flags & Packet::kTombstone) != 0) [[unlikely]] {
    packets_.FreeTombstone(index);
    return;
  }
  const LinkId id = packets_[index].link;
  Link& link = links_[id];
  --link.timed;
  if ((link.arrival_flags & Link::kFromLossyBuffer) != 0) [[unlikely]]
    LeaveLossyBuffer(packets_[index]);
  LeaveDevice(index);
  constexpr uint8_t kSpecial = Link::kHashed | Link::kMayLose | Link::kBalanced | Link::kDelayed;
  if ((link.arrival_flags & kSpecial) != 0 && !ArriveSpecially(index)) [[unlikely]]
    return;
  TakeIn(index);
}

bool FabricNetwork::ArriveSpecially(uint32_t index) {
  const Packet& packet = packets_[index];
  const LinkId id = packet.link;
  const uint8_t flags = links_[id].arrival_flags;
  if ((flags & Link::kHashed) != 0) {
    const uint64_t what = uint64_t{id} << 32 | static_cast<uint64_t>(packet.kind);
    const uint64_t who = uint64_t{packet.flow} << 32 | packet.sequence;
    for (const uint64_t value : {static_cast<uint64_t>(engine_->NowPs()), what, who}) {
      trajectory_hash_ = Mix64(trajectory_hash_ ^ value);
    }
  }
  if ((flags & Link::kMayLose) != 0 && IsLost(index)) return false;
  if ((flags & Link::kDelayed) != 0 && IsHeldBack(index)) return false;
  return (flags & Link::kBalanced) == 0 || ChooseNextLink(index);
}

void FabricNetwork::SetRouting(const EcmpRouting& routing) {
  load_balancer_ = LoadBalancer(
      routing, {.policy = load_balancing_, .flowlet_gap_ps = flowlet_gap_ps_, .seed = seed_},
      [this](LinkId link) { return BacklogPs(link); });
}

bool FabricNetwork::ChooseNextLink(uint32_t index) {
  Packet& packet = packets_[index];
  if (packet.kind != PacketKind::kRdmaWrite) return true;
  const uint32_t to_nic = LinksToNic({packet.path, packet.hop_count});
  const DeviceId nic = graph_->link_source(paths_[packet.path + to_nic]);
  const LinkId next = load_balancer_.Choose(graph_->link_target(packet.link), nic,
                                            to_nic - packet.hop - 1u, packet, engine_->NowPs());
  if (next == LoadBalancer::kNoLink) {
    Lose(index, DropReason::kNoRoute);
    return false;
  }
  packet.next_link = next;
  return true;
}

void FabricNetwork::Drop(uint32_t index, DropReason reason, LinkId link) {
  const Packet& packet = packets_[index];
  const auto slot = static_cast<size_t>(reason);
  ++counters_.dropped_packets[slot];
  if (IsData(packet.kind)) counters_.dropped_bytes[slot] += DataBytes(packet);
  packet_dropped_({engine_->NowPs(), &packet, reason, link});
  SinkOf(index).OnPacketDropped(index, reason, link);
  FreePacket(index);
}

uint32_t FabricNetwork::LinksToNic(PathRef path) const {
  uint32_t links = path.hop_count;
  while (links > 0 && graph_->link(LinkOfPath(path, links - 1)).tier == Tier::kHost) --links;
  return links;
}

int64_t FabricNetwork::PathLatencyPs(PathRef path, uint32_t wire_bytes) const {
  int64_t latency_ps = 0;
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    const LinkId id = LinkOfPath(path, hop);
    latency_ps += links_[id].delay_ps + TransmissionPs(id, wire_bytes);
  }
  return latency_ps;
}

double FabricNetwork::ShortFormShare() const {
  uint64_t sent = 0;
  for (const Link& link : links_) sent += link.packets;
  if (sent == 0) return 1;
  return 1 -
         static_cast<double>(std::min(counters_.general_hops, sent)) / static_cast<double>(sent);
}

LinkCounters FabricNetwork::CountersOfLink(LinkId id) const {
  const Link& link = links_[id];
  LinkCounters counters;
  counters.payload_bytes = link.payload_bytes;
  counters.packets = link.packets;
  if (const auto cold = cold_links_.find(id); cold != cold_links_.end()) {
    counters.retransmitted_bytes = cold->second.retransmitted_bytes;
    counters.dropped_packets = cold->second.dropped_packets;
  }
  counters.header_bytes = link.wire_bytes - link.payload_bytes - counters.retransmitted_bytes;
  if (port_of_link_[id] != Packet::kNone) {
    const Port& port = ports_[port_of_link_[id]];
    counters.paused_ps = port.paused_ps + PauseUpToNowPs(port);
  }
  return counters;
}

}  // namespace railyard
