// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/ns3/fabric_bridge.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ns3/node.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "railyard/ns3/fabric_net_device.h"
#include "simulator/diagnostics/check.h"
#include "simulator/transport/nic/nic_port.h"
#include "simulator/units/mix64.h"

namespace railyard {

size_t FabricBridge::WayHash::operator()(const Way& way) const {
  return Mix64(Mix64(uint64_t{way.from} << 32 | way.to) ^ way.entropy);
}

FabricBridge::FabricBridge(const FabricGraph& graph, FabricNetwork& network,
                           const EcmpRouting& routing, uint32_t full_wire_bytes)
    : graph_(graph), network_(network), routing_(routing), full_wire_bytes_(full_wire_bytes) {
  network.SetSinkOf({PacketKind::kEthernetFrame}, *this);
}

// Paths stay in the network's table, so equal ones are added once.
PathRef FabricBridge::PathOf(const Way& way) {
  const auto [entry, is_new] = paths_.try_emplace(way);
  if (!is_new) return entry->second;
  std::optional<uint32_t> detour_hop;
  const Path links = routing_.Resolve(way.from, way.to, way.entropy, &detour_hop);
  if (links.empty()) return entry->second;
  const auto [known, is_unknown] = known_paths_.try_emplace(links);
  if (is_unknown) known->second = network_.AddPath(links, detour_hop);
  entry->second = known->second;
  return entry->second;
}

FabricBridge::InPort& FabricBridge::PortOf(LinkId link) {
  const auto [entry, is_new] = ports_.try_emplace(link);
  if (is_new) {
    entry->second.nic = graph_.link_source(link);
    entry->second.room_ps = ReadAheadPs(graph_, network_, link, full_wire_bytes_) / 2;
  }
  return entry->second;
}

void FabricBridge::LetDepart(InPort& port) const {
  const int64_t now_ps = network_.engine().NowPs();
  while (!port.departures.empty() && port.departures.front().time_ps <= now_ps) {
    port.used_ps -= port.departures.front().transmission_ps;
    port.departures.pop_front();
  }
}

bool FabricBridge::HasRoom(const Way& way) {
  const PathRef path = PathOf(way);
  if (path.hop_count == 0) return true;  // it is lost at once
  const LinkId link = network_.paths().LinkOf(path, 0);
  InPort& port = PortOf(link);
  const bool is_held = network_.IsHeld(link);
  if (!is_held) LetDepart(port);
  if (port.used_ps < port.room_ps || port.departures.empty()) return true;
  if (std::exchange(port.is_waited_for, true) || is_held) return false;  // until OnLinkReleased()
  WakeAt(link, port.departures.front().time_ps);
  return false;
}

void FabricBridge::Send(const Way& way, const Frame& frame) {
  const PathRef path = PathOf(way);
  uint32_t slot = static_cast<uint32_t>(under_way_.size());
  if (free_.empty()) {
    under_way_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  under_way_[slot] = {.packet = frame.packet, .from = way.from, .to = way.to};
  const PacketId id = network_.AllocatePacket();
  Packet& packet = network_.packet(id);
  packet.kind = PacketKind::kEthernetFrame;
  packet.flow = slot;
  packet.sequence = sent_++;
  packet.path = path.first;
  packet.hop_count = path.hop_count;
  packet.wire_bytes = static_cast<uint16_t>(frame.wire_bytes);
  packet.echo = frame.is_ecn_capable ? 1 : 0;
  packet.timestamp_ps = network_.engine().NowPs();
  network_.Inject(id);
  if (path.hop_count == 0) return;
  const LinkId link = network_.paths().LinkOf(path, 0);
  InPort& port = PortOf(link);
  const int64_t transmission_ps = network_.TransmissionPs(link, frame.wire_bytes);
  port.used_ps += transmission_ps;
  port.departures.push_back(
      {.time_ps = network_.BusyUntilPs(link), .transmission_ps = transmission_ps});
}

void FabricBridge::WakeAt(LinkId link, int64_t time_ps) {
  const int64_t delay_ps = std::max<int64_t>(0, time_ps - network_.engine().NowPs());
  ns3::Simulator::ScheduleWithContext(ns3::Simulator::NO_CONTEXT,
                                      ns3::PicoSeconds(static_cast<uint64_t>(delay_ps)),
                                      &FabricBridge::Wake, this, link);
}

void FabricBridge::Wake(LinkId link) {
  InPort& port = ports_.at(link);
  if (network_.IsHeld(link)) return;  // until OnLinkReleased()
  port.is_waited_for = false;
  devices_.at(port.nic)->SendWaiting();
}

void FabricBridge::OnLinkReleased(LinkId link) {
  const auto found = ports_.find(link);
  if (found == ports_.end()) return;
  InPort& port = found->second;
  // All that the port holds leaves from now on; where the device's packets are in it is not known.
  for (InPort::Departure& departure : port.departures) {
    departure.time_ps = std::max(departure.time_ps, network_.BusyUntilPs(link));
  }
  if (!port.is_waited_for) return;
  WakeAt(link, port.departures.empty() ? 0 : port.departures.front().time_ps);
}

FabricBridge::UnderWay FabricBridge::Take(PacketId packet) {
  const uint32_t slot = network_.packet(packet).flow;
  free_.push_back(slot);
  return std::exchange(under_way_[slot], {});
}

void FabricBridge::OnPacketAtNic(PacketId packet) {
  const bool is_marked = (network_.packet(packet).flags & Packet::kEcnMarked) != 0;
  const UnderWay frame = Take(packet);
  network_.FreePacket(packet);
  FabricNetDevice* const device = devices_.at(frame.to);
  ns3::Simulator::ScheduleWithContext(device->GetNode()->GetId(), ns3::Time(0),
                                      &FabricNetDevice::Receive, device, frame.packet, is_marked);
}

void FabricBridge::OnPacketInMemory(PacketId /*packet*/) {
  SIM_CHECK(false, "a frame's path ends at a NIC");
}

void FabricBridge::OnPacketDropped(PacketId packet, DropReason /*reason*/, LinkId /*link*/) {
  const UnderWay frame = Take(packet);
  devices_.at(frame.from)->NotifyLost(frame.packet);
}

}  // namespace railyard
