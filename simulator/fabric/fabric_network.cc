// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/fabric_network.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(FabricNetwork);

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
  }
  return "";
}

uint64_t NetworkCounters::dropped_data_bytes() const {
  uint64_t sum = 0;
  for (const uint64_t bytes : dropped_bytes) sum += bytes;
  return sum;
}

ns3::TypeId FabricNetwork::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::FabricNetwork")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<FabricNetwork>()
          .AddTraceSource("PacketDropped", "A packet was lost; the counters include it.",
                          ns3::MakeTraceSourceAccessor(&FabricNetwork::packet_dropped_),
                          "railyard::PacketDroppedCallback")
          .AddTraceSource("LinkStateChanged", "A direction of a link went down or came back.",
                          ns3::MakeTraceSourceAccessor(&FabricNetwork::link_state_changed_),
                          "railyard::LinkStateChangedCallback");
  return type_id;
}

void FabricNetwork::Build(const FabricGraph& graph, FabricSimulatorImpl& engine) {
  graph_ = &graph;
  engine_ = &engine;
  links_.resize(graph.link_count());
  is_held_.resize(graph.link_count());
  switches_.resize(graph.device_count());
  for (DeviceId id = 0; id < graph.device_count(); ++id) {
    if (graph.device(id).kind == DeviceKind::kSwitch) switches_[id] = ns3::CreateObject<Switch>();
  }
  for (LinkId id = 0; id < graph.link_count(); ++id) {
    const LinkProperties& properties = graph.link(id);
    const Device& source = graph.device(graph.link_source(id));
    const Device& target = graph.device(graph.link_target(id));
    Link& link = links_[id];
    link.delay_ps = properties.propagation_ps;
    if (target.kind == DeviceKind::kGpu) {
      link.arrival = Arrival::kGpu;
    } else if (target.kind == DeviceKind::kNic && source.kind != DeviceKind::kGpu) {
      link.arrival = Arrival::kNic;
    } else {
      link.arrival = Arrival::kForward;
      link.delay_ps += target.forwarding_latency_ps;
    }
  }
  engine.SetHandler(EventClass::kArrival, &FabricNetwork::HandleArrival, this);
  engine.SetPrefetch(EventClass::kArrival, packets_.base(), sizeof(Packet));
}

PathRef FabricNetwork::AddPath(const std::vector<LinkId>& links) {
  SIM_CHECK(links.size() <= UINT8_MAX, "a path of more than 255 links");
  const PathRef path{static_cast<uint32_t>(paths_.size()), static_cast<uint8_t>(links.size())};
  paths_.insert(paths_.end(), links.begin(), links.end());
  return path;
}

void FabricNetwork::Inject(uint32_t index) {
  Packet& packet = packets_[index];
  if (IsData(packet.kind)) {
    ++counters_.packets;
    counters_.injected_bytes += packet.payload_bytes;
  }
  if (packet.hop_count == 0) [[unlikely]] {
    Drop(index, DropReason::kNoRoute, UINT32_MAX);
    return;
  }
  Transmit(index);
}

int64_t FabricNetwork::LearnTransmission(LinkId id, uint32_t wire_bytes) {
  Link& link = links_[id];
  const int64_t transmission_ps = TransmissionPs(id, wire_bytes);
  if (wire_bytes > link.usual_wire_bytes) {
    link.usual_wire_bytes = static_cast<uint16_t>(wire_bytes);
    link.usual_transmission_ps = transmission_ps;
  }
  return transmission_ps;
}

void FabricNetwork::Transmit(uint32_t index) {
  const Packet& packet = packets_[index];
  const LinkId id = paths_[packet.path + packet.hop];
  Link& link = links_[id];
  const int64_t transmission_ps = packet.wire_bytes == link.usual_wire_bytes
                                      ? link.usual_transmission_ps
                                      : LearnTransmission(id, packet.wire_bytes);
  link.busy_until_ps = std::max(link.busy_until_ps, engine_->NowPs()) + transmission_ps;
  engine_->ScheduleFabric(link.busy_until_ps + link.delay_ps, EventClass::kArrival, id, index);
}

void FabricNetwork::HandleArrival(void* self, uint32_t index) {
  auto& network = *static_cast<FabricNetwork*>(self);
  Packet& packet = network.packets_[index];
  const LinkId id = network.paths_[packet.path + packet.hop];
  Link& link = network.links_[id];
  if (link.may_lose && network.IsLost(index)) [[unlikely]]
    return;
  ++packet.hop;
  ++link.packets;
  link.wire_bytes += packet.wire_bytes;
  if (IsData(packet.kind)) {
    ++network.counters_.packet_hops;
    if ((packet.flags & Packet::kRetransmitted) == 0) [[likely]] {
      link.payload_bytes += packet.payload_bytes;
    } else {
      network.cold_links_[id].retransmitted_bytes += packet.payload_bytes;
    }
  } else {
    ++network.counters_.control_hops;
  }
  switch (link.arrival) {
    case Arrival::kForward:
      network.Transmit(index);
      break;
    case Arrival::kGpu:
      network.sink_->OnPacketAtGpu(index);
      break;
    case Arrival::kNic:
      network.sink_->OnPacketAtNic(index);
      break;
  }
}

bool FabricNetwork::IsLost(uint32_t index) {
  const Packet& packet = packets_[index];
  const LinkId id = paths_[packet.path + packet.hop];
  if (WasDown(id, packet)) {
    Drop(index, DropReason::kLinkDown, id);
    return true;
  }
  const auto filter = loss_filters_.find(id);
  if (filter == loss_filters_.end() || !filter->second(packet)) return false;
  Drop(index, DropReason::kBitError, id);
  return true;
}

void FabricNetwork::SetLossFilter(LinkId link, LossFilter is_lost) {
  loss_filters_[link] = std::move(is_lost);
  links_[link].may_lose = true;
}

bool FabricNetwork::WasDown(LinkId id, const Packet& packet) const {
  const Link& link = links_[id];
  const DeviceId target = graph_->link_target(id);
  const int64_t forwarding_ps =
      link.arrival == Arrival::kForward ? graph_->device(target).forwarding_latency_ps : 0;
  // The packet was on the wire from its first bit leaving to its last bit arriving.
  const int64_t last_bit_ps = engine_->NowPs() - forwarding_ps;
  const int64_t first_bit_ps =
      engine_->NowPs() - link.delay_ps - TransmissionPs(id, packet.wire_bytes);
  const auto cold = cold_links_.find(id);
  if (cold == cold_links_.end()) return false;
  const auto& downtimes = cold->second.downtimes;
  for (auto it = downtimes.rbegin(); it != downtimes.rend() && it->until_ps > first_bit_ps; ++it) {
    if (it->from_ps <= last_bit_ps) return true;
  }
  return false;
}

void FabricNetwork::Drop(uint32_t index, DropReason reason, LinkId link) {
  const Packet& packet = packets_[index];
  const auto slot = static_cast<size_t>(reason);
  ++counters_.dropped_packets[slot];
  if (IsData(packet.kind)) counters_.dropped_bytes[slot] += packet.payload_bytes;
  if (reason == DropReason::kLinkDown || reason == DropReason::kBitError) {
    ++cold_links_[link].dropped_packets;
  }
  packet_dropped_({engine_->NowPs(), &packet, reason, link});
  sink_->OnPacketDropped(index, reason, link);
  FreePacket(index);
}

void FabricNetwork::SetLinkUp(LinkId id, bool up) {
  Link& link = links_[id];
  if (link.up == up) return;
  link.up = up;
  link.may_lose = true;
  auto& downtimes = cold_links_[id].downtimes;
  if (up) {
    downtimes.back().until_ps = engine_->NowPs();
  } else {
    downtimes.push_back({engine_->NowPs(), kNeverPs});
  }
  link_state_changed_({engine_->NowPs(), id, up});
}

int64_t FabricNetwork::PathLatencyPs(PathRef path, uint32_t wire_bytes) const {
  int64_t latency_ps = 0;
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    const LinkId id = LinkOfPath(path, hop);
    latency_ps += links_[id].delay_ps + TransmissionPs(id, wire_bytes);
  }
  return latency_ps;
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
  return counters;
}

}  // namespace railyard
