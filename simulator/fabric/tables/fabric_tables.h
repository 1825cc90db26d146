// SPDX-License-Identifier: GPL-2.0-only
// Holds the plain tables of a network, with one row per link, port or packet, and the functions of
// single rows: the numbers of virtual channels, transmission times and the order of packets. The
// objects of a network share these tables by reference; all their other state is private.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/tables/fabric_settings.h"
#include "simulator/fabric/tables/link_record.h"
#include "simulator/fabric/tables/network_counters.h"
#include "simulator/fabric/tables/packet.h"
#include "simulator/fabric/tables/packet_pool.h"
#include "simulator/fabric/tables/port.h"
#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {

struct FabricTables {
  // Stands for no port.
  static constexpr uint32_t kNoPort = UINT32_MAX;

  // Every hop accesses these.
  std::vector<LinkRecord> links;
  PacketPool packets;
  FabricSimulatorImpl* engine = nullptr;
  NetworkCounters counters;
  // Only special hops access these as well.
  const FabricGraph* graph = nullptr;
  std::optional<LosslessClasses> classes;
  std::vector<uint64_t> rates_bps;     // by link
  std::vector<uint8_t> is_held;        // by link: its port's data is paused or lacks credit
  std::vector<uint32_t> port_of_link;  // kNoPort: always in the short form
  std::deque<Port> ports;              // they do not move when others are added
  FabricSettings settings;

  // Attaches the tables to a fabric and an engine. Both must outlive this.
  void Attach(const FabricGraph& of, FabricSimulatorImpl& with);
  // Makes a row for every link of the graph, and no ports.
  void ResetRows();

  int64_t NowPs() const { return engine->NowPs(); }

  // --- Virtual channels: a channel is a link in one lossless class. Channels of class 0 have the
  // numbers of their links.
  uint32_t channel_count() const { return graph->link_count() * classes->count(); }
  VirtualChannelId ChannelOf(LinkId link, uint32_t lossless_class) const {
    return VirtualChannelId{lossless_class * graph->link_count() + link};
  }
  LinkId LinkOf(VirtualChannelId channel) const { return LinkId{channel % graph->link_count()}; }
  uint32_t LosslessClassOf(VirtualChannelId channel) const { return channel / graph->link_count(); }
  // Returns the class of a packet on the link that it is on or waits for.
  uint32_t LosslessClassOf(const Packet& packet) const {
    return (links[packet.link].send_flags & LinkRecord::kClassed) != 0 ? packet.tag : 0;
  }
  VirtualChannelId ChannelOn(const Packet& packet) const {
    return ChannelOf(packet.link, LosslessClassOf(packet));
  }
  uint32_t ClassCountOf(LinkId link) const {
    return (links[link].send_flags & LinkRecord::kClassed) != 0 ? classes->count() : 1;
  }
  // Returns the link's name, with the class if the link has several.
  std::string NameOf(VirtualChannelId channel) const;

  // --- Time
  int64_t TransmissionPs(LinkId link, uint32_t wire_bytes) const {
    return TransferTimePs(wire_bytes, rates_bps[link]);
  }
  // Computes TransmissionPs() and caches it in the link's row for the next packet of that size. It
  // is not inlined, so that the hot path keeps its registers.
  [[gnu::noinline]] int64_t LearnTransmission(LinkId link, uint32_t wire_bytes);
  // Returns when the last bit of a timed packet leaves, or left, its port.
  int64_t DeparturePs(const Packet& packet) const {
    return packet.arrival_ps - links[packet.link].delay_ps;
  }
  // Returns the time that a port needs to send all it holds, if nothing holds it up.
  int64_t BacklogPs(LinkId link) const;
  // Returns when the packet in service has left, or the current time if there is none.
  int64_t ServiceEndPs(LinkId link) const;

  // --- Ports
  bool IsShort(LinkId link) const {
    return (links[link].send_flags & LinkRecord::kGeneralForm) == 0;
  }
  // Returns the port, which is created when it is first used.
  Port& PortOf(LinkId link);
  // Returns null if the link has no port record.
  const Port* FindPort(LinkId link) const {
    return port_of_link[link] == kNoPort ? nullptr : &ports[port_of_link[link]];
  }

  // Calls visit(index) for each packet that is timed and has not arrived, beginning with the last.
  template <typename Visit>
  void ForEachTimed(const LinkRecord& link, Visit visit) const {
    PacketId index = link.last;
    for (uint32_t left = link.timed; left > 0; --left) {
      const PacketId before = packets[index].next;
      visit(index);
      index = before;
    }
  }
  // Calls visit(index) for each packet that waits in a port of the general form.
  template <typename Visit>
  void ForEachWaiting(const Port& port, Visit visit) const {
    const auto visit_all = [&](const PacketQueue& queue) {
      for (PacketId i = queue.first; i != PacketId::kNone; i = packets[i].next) visit(i);
    };
    visit_all(port.control);
    for (const DataQueue& queue : port.data) visit_all(queue);
  }
  // Appends a packet whose arrival time is known to those on the link.
  void AppendTimed(LinkRecord& link, PacketId index, Packet& packet) {
    packet.next = link.last;
    link.last = index;
    ++link.timed;
  }
  // Times a packet behind all that the port holds, and schedules its arrival.
  [[gnu::always_inline]] void SendInShortForm(PacketId index, Packet& packet, LinkRecord& link) {
    const int64_t transmission_ps = packet.wire_bytes == link.usual_wire_bytes
                                        ? link.usual_transmission_ps
                                        : LearnTransmission(packet.link, packet.wire_bytes);
    link.busy_until_ps = std::max(link.busy_until_ps, engine->NowPs()) + transmission_ps;
    packet.arrival_ps = link.busy_until_ps + link.delay_ps;
    AppendTimed(link, index, packet);
    engine->ScheduleFabric(packet.arrival_ps, event_order::kArrival, packet.link, index);
  }
};

}  // namespace railyard
