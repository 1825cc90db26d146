// SPDX-License-Identifier: GPL-2.0-only
// Simulates the packets in flight, the links they cross and the buffers they wait in.
//
// Links serialize packets at their rate (store and forward), and add propagation and the forwarding
// latency of the device at their end. Output queues serve control strictly before data, without
// preemption. Data has one lossless class, or several where routes need them; each class is paused
// separately. Shared buffers have dynamic thresholds, and either pause frames and headroom or tail
// drop. Links that end in no shared buffer may have credits. Switches mark packets (ECN). Each
// direction of a link has a state and a rate; packets on the wire of a link that fails are lost.
//
// The model simplifies the following. A packet enters a buffer when it has passed the forwarding
// pipeline. Pause frames are never lost, since real ones are repeated, and take no bandwidth from
// other packets. A credit returns to its sender when the packet has crossed the next link or was
// consumed: the update is assumed to take as long as the packet takes to the next device.
// Congestion notifications (CNP) are small and rare; they are in no account and need no credit.
//
// The parts of a network are objects over plain tables (tables/fabric_tables.h). This class owns
// them and implements the hop, which passes packets from one part to the next.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/buffer/marking.h"
#include "simulator/fabric/buffer/pause_frames.h"
#include "simulator/fabric/buffer/shared_buffers.h"
#include "simulator/fabric/fabric_part.h"
#include "simulator/fabric/flow_accounts.h"
#include "simulator/fabric/in_network/in_network_reduction.h"
#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/link/link_states.h"
#include "simulator/fabric/link/link_taps.h"
#include "simulator/fabric/network_events.h"
#include "simulator/fabric/network_state.h"
#include "simulator/fabric/packet_sink.h"
#include "simulator/fabric/port/egress_ports.h"
#include "simulator/fabric/port/load_balancer.h"
#include "simulator/fabric/port/switch.h"
#include "simulator/fabric/tables/fabric_settings.h"
#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/network_counters.h"
#include "simulator/fabric/tables/packet.h"
#include "simulator/fabric/tables/path_table.h"
#include "simulator/fabric/tables/telemetry_table.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class FabricNetwork : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  FabricNetwork() = default;

  // Builds the network and configures it with the current attributes (see Configure()). `graph`,
  // `engine` and the sinks must outlive this object. The sinks must be set before the first packet.
  void Build(const FabricGraph& graph, FabricSimulatorImpl& engine);
  // Sets the sink of packets of all kinds.
  void SetSink(PacketSink& sink) { sinks_.fill(&sink); }
  // Sets the sink of packets of these kinds.
  void SetSinkOf(std::initializer_list<PacketKind> kinds, PacketSink& sink) {
    for (const PacketKind kind : kinds) sinks_[static_cast<size_t>(kind)] = &sink;
  }
  // Sets the routes; required if LoadBalancing is not ECMP. `routing` must outlive this object.
  // OnRoutesChanged() must be called when it has changed.
  void SetRouting(const EcmpRouting& routing);
  void OnRoutesChanged() { load_balancer_.ForgetRoutes(); }
  // Returns null for a device that is not a switch.
  ns3::Ptr<Switch> GetSwitch(DeviceId device) const { return switches_[device]; }
  // Sets the buffer that every NIC has for packets from the wire that wait for its link to the
  // host.
  void SetReceiveBuffers(const BufferSettings& settings) {
    tables_.settings.receive_buffers = settings;
  }
  // Makes switches that balance load deliver packets at the port at which their path ends.
  void GivePortsAddresses() { tables_.settings.ports_have_addresses = true; }
  // Reads the attributes of the network and of its switches, and the settings above, again
  // (configure.cc). Preconditions: no packet has been injected, and no group or aggregation node
  // was added.
  void Configure();

  // Adds a path, which stays valid for the life of the network. `detour_hop` is that of
  // LosslessClasses::OfPath.
  PathRef AddPath(const std::vector<LinkId>& links,
                  std::optional<uint32_t> detour_hop = std::nullopt) {
    return paths_.Add(links, detour_hop, *tables_.classes);
  }
  const PathTable& paths() const { return paths_; }

  // Returns the groups of GPUs and the aggregation trees for which switches combine packets.
  InNetworkReduction& reduction() { return reduction_; }

  // Allocates a packet. This and Inject() may move all packets and so invalidate references to
  // them.
  PacketId AllocatePacket() { return tables_.packets.Allocate(); }
  void FreePacket(PacketId index) { tables_.packets.Free(index); }
  Packet& packet(PacketId index) { return tables_.packets[index]; }
  uint64_t live_packets() const { return tables_.packets.live_count(); }
  // Returns the payload of data packets in flight, by walking the pool.
  uint64_t InFlightBytes() const {
    return tables_.packets.PayloadBytes() + part_.absorbed_in_flight_bytes() +
           flows_.bytes_in_flight();
  }

  // Puts a packet on its first link. Its path, bytes and kind must be set, and its hop must be 0. A
  // packet whose path has no links is dropped (NO_ROUTE).
  void Inject(PacketId index);
  // Prefetches the record needed to send over a link.
  void FetchLink(LinkId link) const { __builtin_prefetch(&tables_.links[link], 1); }
  // Makes the engine prefetch the record that Packet::flow names in `flows` before each arrival.
  void FetchFlowsAhead(const TimingWheel::PrefetchTable& flows);
  // Injects a data packet on a path of two links, without using its `path`.
  void InjectOver(PacketId index, LinkId first, LinkId second);
  // Sends a packet that was passed to the sink on its next link; must be called from within that
  // callback.
  void SendOn(PacketId index) {
    was_sent_on_ = true;
    Transmit(index);
  }
  // Frees a data packet that has reached its receiver.
  void Deliver(PacketId index) {
    tables_.counters.delivered_bytes += DataBytes(tables_.packets[index]);
    FreePacket(index);
  }
  // Frees a packet that the sink does not accept.
  void Drop(PacketId index, DropReason reason, LinkId link);

  // Sets the state of one direction of a link now. Packets on its wire are lost.
  void SetLinkUp(LinkId link, bool up);
  bool IsLinkUp(LinkId link) const { return states_.IsUp(link); }
  // Returns whether pause frames or a storm keep data from starting on the link.
  bool IsPaused(LinkId link) const { return ports_.IsPaused(link); }
  // Sets the rate of packets that start from now on; a packet in service keeps its rate.
  void SetLinkRate(LinkId link, uint64_t rate_bps);
  uint64_t RateBps(LinkId link) const { return tables_.rates_bps[link]; }
  int64_t TransmissionPs(LinkId link, uint32_t wire_bytes) const {
    return tables_.TransmissionPs(link, wire_bytes);
  }
  // Returns the time that the link's port needs to send all its packets, if nothing holds them.
  int64_t BacklogPs(LinkId link) const { return tables_.BacklogPs(link); }
  int64_t BusyUntilPs(LinkId link) const { return tables_.NowPs() + BacklogPs(link); }
  // Returns whether data of the link's port is paused or waits for credit. OnLinkReleased() is
  // called when this ends.
  bool IsHeld(LinkId link) const { return tables_.is_held[link] != 0; }
  // Returns the sum of the propagation and forwarding latencies along a path and of the
  // serialization of one packet of `wire_bytes` at each hop.
  int64_t PathLatencyPs(PathRef path, uint32_t wire_bytes) const;
  // Returns how many links of a path to a GPU's memory lead to its NIC.
  uint32_t LinksToNic(PathRef path) const;

  // Makes a link lose each packet for which `is_lost` returns true; it is called when the packet's
  // last bit arrives (BIT_ERROR).
  using LossFilter = railyard::LossFilter;
  void SetLossFilter(LinkId link, LossFilter is_lost) {
    states_.SetLossFilter(link, std::move(is_lost));
  }
  // Returns when the packet's last bit reaches, or reached, the far end of its cable.
  int64_t LastBitPs(const Packet& packet) const {
    return tables_.DeparturePs(packet) + tables_.graph->link(packet.link).propagation_ps;
  }

  // Returns the functions that are called for packets of links. Configure() removes them.
  LinkTaps& taps() { return taps_; }
  const LinkTaps& taps() const { return taps_; }

  // Makes a link delay each packet, after it has arrived completely, by the result of
  // `extra_delay_ps`, and longer if it would overtake another: packets of one link stay in order.
  // Pause frames are not delayed.
  using DelayFilter = railyard::DelayFilter;
  void SetDelayFilter(LinkId link, DelayFilter extra_delay_ps);

  // Must be called when a filter has drawn a random number or counted a packet, because its next
  // result is then not a function of the network's state.
  void NoteDraw() { ++tables_.counters.draws; }

  // Starts or ends a storm of pause frames from the device at the link's far end. During a storm
  // the link's data waits regardless of the buffers. The storm's frames are not counted.
  void SetPauseStorm(LinkId link, bool storms);

  // Returns the telemetry of packets, which switches write once it is enabled.
  TelemetryTable& telemetry() { return telemetry_; }
  const TelemetryTable& telemetry() const { return telemetry_; }

  // Returns the accounts of messages that cross the fabric as flows instead of packets.
  FlowAccounts& flows() { return flows_; }

  LinkCounters CountersOfLink(LinkId link) const;
  int64_t PausedPs() const;  // NetworkCounters::pfc_pause_ps plus the pauses that last, up to now
  const NetworkCounters& counters() const { return tables_.counters; }
  const std::vector<HoldReport>& hold_reports() const { return holds_.reports(); }
  // Ends the program unless packets are conserved (conservation.h).
  void CheckConservation() const;

  // Returns the shared buffers, which can be divided for partitions.
  SharedBuffers& buffers() { return buffers_; }

  // Returns the interface to other processes that simulate other parts of the network.
  FabricPart& part() { return part_; }
  const FabricPart& part() const { return part_; }

  const FabricSettings& settings() const { return tables_.settings; }
  FabricSimulatorImpl& engine() { return *tables_.engine; }

  // Returns the owner of the state, for snapshots.
  NetworkState& state() { return state_; }
  const NetworkState& state() const { return state_; }

 private:
  using Link = LinkRecord;

  // ns-3's attributes are bound to these; its enumerations are integers.
  template <auto kField, typename T>
  void Set(T value) {
    tables_.settings.*kField =
        static_cast<std::remove_reference_t<decltype(tables_.settings.*kField)>>(value);
  }
  template <auto kField, typename T>
  T Get() const {
    return static_cast<T>(tables_.settings.*kField);
  }

  // These functions make a hop (fabric_network.cc).
  PacketSink& SinkOf(PacketId index) {
    return *sinks_[static_cast<size_t>(tables_.packets[index].kind)];
  }
  static void HandleArrival(void* self, uint32_t index);
  void Arrive(PacketId index);
  // Passes an arrived packet to the device at the link's far end.
  [[gnu::always_inline]] void TakeIn(PacketId index);
  void LeaveDevice(PacketId index);
  void Transmit(PacketId index);
  [[gnu::always_inline]] void Forward(PacketId index);
  [[gnu::always_inline]] void ForwardOn(PacketId index, LinkId link);
  void ReturnCredit(VirtualChannelId channel, uint32_t wire_bytes) {
    if (accounts_.GiveBackCredit(channel, wire_bytes)) [[unlikely]]
      WakeForCredit(channel);
  }

  // These functions make hops that need a decision (special_hops.cc).
  static void HandleDeparture(void* self, uint32_t link);
  static void HandlePauseFrame(void* self, uint32_t frame);
  static void HandleHoldCheck(void* self, uint32_t channel);
  static void HandleLateArrival(void* self, uint32_t link);
  bool ArriveSpecially(PacketId index);  // false if the packet was lost, or is held
  void TakeInLate(PacketId index);
  void ArriveAtCombiningSwitch(PacketId index);
  // Chooses the packet's next link at a switch with load balancing. Returns false if the packet was
  // lost.
  bool ChooseNextLink(PacketId index);
  // Sets the class of a packet that is about to join its link's queue.
  void AssignClass(Packet& packet);
  void TransmitSpecially(PacketId index);
  // Sends a packet behind those that the port holds, in the form that the port can take.
  void SendSpecially(PacketId index);
  // These functions return false if the packet was dropped. FindsRoomAtNic() must be called before
  // the NIC accepts a packet, because a transport must not acknowledge a packet that a full buffer
  // may still lose.
  bool AdmitToLossless(PacketId index);
  bool AdmitToLossy(PacketId index);
  bool FindsRoomAtNic(PacketId index);
  void SendPauseFrame(PauseFrame frame);
  void MarkAbove(Packet& packet, int64_t backlog_ps);
  bool IsHeldBack(PacketId index);  // true: it arrives later
  void Lose(PacketId index, DropReason reason);
  void WakeForCredit(VirtualChannelId channel);
  // Calls OnLinkReleased() of every sink once.
  void NotifyReleased(LinkId link);

  // Every hop accesses these.
  FabricTables tables_;
  ChannelAccounts accounts_;
  PathTable paths_;
  std::array<PacketSink*, kPacketKindCount> sinks_{};
  const char* links_base_ = nullptr;  // for the engine's prefetches
  bool was_sent_on_ = false;
  // Only special hops access these.
  SharedBuffers buffers_{tables_, accounts_};
  TelemetryTable telemetry_{tables_};
  HoldMonitor holds_{tables_};
  EgressPorts ports_{tables_, accounts_, buffers_, holds_, telemetry_};
  PauseFrames pause_frames_{tables_};
  Marking marking_{tables_};
  LinkStates states_{tables_};
  LinkDelays delays_;
  InNetworkReduction reduction_{tables_, paths_, telemetry_};
  LoadBalancer load_balancer_;
  LinkTaps taps_{tables_};
  FlowAccounts flows_{tables_};
  FabricPart part_{tables_, delays_};
  NetworkState state_{{.tables = tables_,
                       .accounts = accounts_,
                       .buffers = buffers_,
                       .pause_frames = pause_frames_,
                       .states = states_,
                       .delays = delays_,
                       .holds = holds_,
                       .telemetry = telemetry_,
                       .reduction = reduction_,
                       .flows = flows_}};
  std::vector<ns3::Ptr<Switch>> switches_;  // by device

  ns3::TracedCallback<const PacketDropped&> packet_dropped_;
  ns3::TracedCallback<const LinkStateChanged&> link_state_changed_;
  ns3::TracedCallback<const PauseSent&> pause_sent_;
  ns3::TracedCallback<const EcnMarked&> ecn_marked_;
};

}  // namespace railyard
