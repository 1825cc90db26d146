// SPDX-License-Identifier: GPL-2.0-only
// The packets under way, the links they cross and the buffers they wait in.
//
// Modelled: serialisation at the link's rate (store and forward), propagation, the forwarding
// latency of the device a link ends at; output queues in two classes, control strictly before data
// and not cutting off what is being sent; data in one lossless class or, where routes need several,
// more, of which each is paused by itself; shared buffers with dynamic thresholds, pause frames and
// headroom, or tail drop; credits; ECN; link state and rate per direction with the loss of what was
// on the wire.
// Simplified: a packet is in a buffer from its arrival behind the forwarding pipeline on. Pause
// frames are never lost, since real ones are repeated, and take no bandwidth from others. A credit
// is back with its sender when the packet has crossed the next link (or was consumed): an update is
// assumed to take as long as the packet's own way on. Congestion notifications (CNP), small and
// rare, are in no account and need no credit.
//
// The parts of a network are objects over plain tables (fabric_tables.h). This class is their
// interface to everything else, and the hop: it takes packets from one part to the next.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
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
#include "simulator/fabric/fabric_settings.h"
#include "simulator/fabric/fabric_tables.h"
#include "simulator/fabric/in_network/in_network_reduction.h"
#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/link/link_states.h"
#include "simulator/fabric/network_counters.h"
#include "simulator/fabric/network_events.h"
#include "simulator/fabric/packet.h"
#include "simulator/fabric/packet_sink.h"
#include "simulator/fabric/path_table.h"
#include "simulator/fabric/port/egress_ports.h"
#include "simulator/fabric/port/load_balancer.h"
#include "simulator/fabric/port/switch.h"
#include "simulator/fabric/telemetry.h"
#include "simulator/state/state_registry.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class FabricNetwork : public ns3::Object, public StateOwner {
 public:
  static ns3::TypeId GetTypeId();
  FabricNetwork() = default;

  // `graph`, `engine` and the sink must outlive this; the sink is set before the first packet.
  // Reads the attributes, as Configure() does.
  void Build(const FabricGraph& graph, FabricSimulatorImpl& engine);
  void SetSink(PacketSink& sink) { sinks_.fill(&sink); }
  // Sets the sink of packets of these kinds.
  void SetSinkOf(std::initializer_list<PacketKind> kinds, PacketSink& sink) {
    for (const PacketKind kind : kinds) sinks_[static_cast<size_t>(kind)] = &sink;
  }
  // Is needed where LoadBalancing is another than ECMP. `routing` must outlive this;
  // OnRoutesChanged() is to be called when it has changed.
  void SetRouting(const EcmpRouting& routing);
  void OnRoutesChanged() { load_balancer_.ForgetRoutes(); }
  // Returns null for a device that is no switch.
  ns3::Ptr<Switch> GetSwitch(DeviceId device) const { return switches_[device]; }
  // Sets the buffer that every NIC has for packets from the wire that wait for its link to the
  // host.
  void SetReceiveBuffers(const BufferSettings& settings) {
    tables_.settings.receive_buffers = settings;
  }
  // Reads the attributes of the network and of its switches, and the settings above, again.
  // Precondition: no packet has been injected.
  void Configure();

  // Paths stay valid for the life of the network. `detour_hop`: LosslessClasses::OfPath's.
  PathRef AddPath(const std::vector<LinkId>& links,
                  std::optional<uint32_t> detour_hop = std::nullopt) {
    return paths_.Add(links, detour_hop, *tables_.classes);
  }
  LinkId LinkOfPath(PathRef path, uint32_t hop) const { return paths_.LinkOf(path, hop); }
  std::vector<LinkId> LinksOfPath(PathRef path) const { return paths_.LinksOf(path); }

  // Groups of GPUs and aggregation trees for which switches combine (InNetworkReduction).
  using AggregationNode = railyard::AggregationNode;
  uint32_t AddSwitchGroup(uint16_t gpu_count, const std::vector<LinkId>& up_links) {
    return reduction_.AddSwitchGroup(gpu_count, up_links);
  }
  uint32_t AddAggregationNode(AggregationNode node) { return reduction_.AddNode(std::move(node)); }
  uint32_t aggregation_node_count() const { return reduction_.node_count(); }

  // May move all packets, as may Inject(): references to packets end here.
  uint32_t AllocatePacket() { return tables_.packets.Allocate(); }
  void FreePacket(uint32_t index) { tables_.packets.Free(index); }
  Packet& packet(uint32_t index) { return tables_.packets[index]; }
  uint64_t live_packets() const { return tables_.packets.live_count(); }
  // Payload of data packets under way, by walking the pool.
  uint64_t InFlightBytes() const { return tables_.packets.PayloadBytes(); }

  // Puts a packet, with path, bytes and kind set and hop 0, on its first link. A path of no links
  // drops it (NO_ROUTE).
  void Inject(uint32_t index);
  // Fetch into the cache what is needed to send next over a link or along a path of the table, and,
  // for packets that arrive, the records of a table by Packet::flow.
  void FetchLink(LinkId link) const { __builtin_prefetch(&tables_.links[link], 1); }
  void FetchPath(uint32_t first_link) const { paths_.Fetch(first_link); }
  void FetchFlowsAhead(const TimingWheel::PrefetchTable& flows);
  // The same for data with a path of two links, which its `path` need not name.
  void InjectOver(uint32_t index, LinkId first, LinkId second);
  // Sends a packet that was handed to the sink on its next link, from within that call.
  void SendOn(uint32_t index) {
    was_sent_on_ = true;
    Transmit(index);
  }
  // A data packet reached its receiver; frees it.
  void Deliver(uint32_t index) {
    tables_.counters.delivered_bytes += DataBytes(tables_.packets[index]);
    FreePacket(index);
  }
  // The sink will not take a packet; frees it.
  void Drop(uint32_t index, DropReason reason, LinkId link);

  // A direction of a link goes down or comes back, now. What is on the wire at that moment is lost.
  void SetLinkUp(LinkId link, bool up);
  bool IsLinkUp(LinkId link) const { return states_.IsUp(link); }
  // Returns whether pause frames or a storm keep data from starting on it.
  bool IsPaused(LinkId link) const { return ports_.IsPaused(link); }
  // Packets that start from now on have this rate; one that has started keeps its own.
  void SetLinkRate(LinkId link, uint64_t rate_bps);
  uint64_t RateBps(LinkId link) const { return tables_.rates_bps[link]; }
  int64_t TransmissionPs(LinkId link, uint32_t wire_bytes) const {
    return tables_.TransmissionPs(link, wire_bytes);
  }
  // Time the link's port takes to send all it holds if nothing holds it up.
  int64_t BacklogPs(LinkId link) const { return tables_.BacklogPs(link); }
  int64_t BusyUntilPs(LinkId link) const { return tables_.NowPs() + BacklogPs(link); }
  // Data of the link's port is paused, or waits for credit. Ends with OnLinkReleased().
  bool IsHeld(LinkId link) const { return tables_.is_held[link] != 0; }
  // Sum of propagation and forwarding latency along a path, and of the serialisation of one packet
  // at each hop.
  int64_t PathLatencyPs(PathRef path, uint32_t wire_bytes) const;
  // Returns how many links of a path to a GPU's memory lead to the NIC there.
  uint32_t LinksToNic(PathRef path) const;

  // A link loses each packet for which `is_lost` answers true, asked as its last bit arrives
  // (BIT_ERROR).
  using LossFilter = railyard::LossFilter;
  void SetLossFilter(LinkId link, LossFilter is_lost) {
    states_.SetLossFilter(link, std::move(is_lost));
  }
  // When the packet's last bit reaches, or reached, the far end of the cable it is on.
  int64_t LastBitPs(const Packet& packet) const {
    return tables_.DeparturePs(packet) + tables_.graph->link(packet.link).propagation_ps;
  }

  // A link holds each packet that arrived, whole, for as long as `extra_delay_ps` answers, and
  // longer where it would overtake: packets of one link stay in order. Pause frames are not held.
  using DelayFilter = railyard::DelayFilter;
  void SetDelayFilter(LinkId link, DelayFilter extra_delay_ps);

  // A filter drew, or counted: its next answer is no function of the network's state.
  void NoteDraw() { ++tables_.counters.draws; }
  // Sets a number that stands for the faults that hold: a network under others is in another state.
  void SetConditions(uint64_t conditions) { conditions_ = conditions; }
  uint64_t conditions() const { return conditions_; }

  // The device at the link's far end sends pause frames without pause, from now on or no more: the
  // link's data waits, whatever its buffers say. Not counted among pause frames.
  void SetPauseStorm(LinkId link, bool storms);

  // Makes data packets collect what the switches on their way write into them.
  void EnableTelemetry() { telemetry_.Enable(); }
  // Returns what a packet collected; empty without EnableTelemetry().
  std::span<const HopTelemetry> Telemetry(uint32_t packet) const { return telemetry_.Of(packet); }
  void CopyTelemetry(uint32_t from, uint32_t to) { telemetry_.Copy(from, to); }

  LinkCounters CountersOfLink(LinkId link) const;
  int64_t PausedPs() const;  // NetworkCounters::pfc_pause_ps, and what has not ended up to now
  const NetworkCounters& counters() const { return tables_.counters; }
  // Returns the share of transmissions in the short form, which takes one event.
  double ShortFormShare() const;
  // Over (time, link, kind, flow, sequence) of every arrival, in order; 0 unless the attribute
  // TrajectoryHash was set.
  uint64_t trajectory_hash() const { return trajectory_hash_; }
  const std::vector<HoldReport>& hold_reports() const { return holds_.reports(); }
  // Bytes a device keeps of packets that came in by `link`, or that were sent on it and for which
  // no credit came back; what they may be at most in its headroom; whether its sender is told to
  // pause.
  uint64_t AccountBytes(LinkId link);
  uint64_t HeadroomBytesOfLink(LinkId link) const {
    return buffers_.PauseOf(link).headroom_bytes_max;
  }
  bool IsXoff(LinkId link) const { return buffers_.PauseOf(link).is_xoff; }

  // Stops the program unless, for every link, packets put on it = arrived + lost + still on it; for
  // every switch, packets in = put on its links + dropped; and every account equals the packets it
  // is of.
  void CheckConservation() const;
  FabricSimulatorImpl& engine() { return *tables_.engine; }

  // Visits all that decides what comes once no packet is under way, and the counters
  // (network_snapshot.cc).
  std::string state_name() const override { return "the network's queues and links"; }
  void Visit(StateArchive& archive) override;
  // Visits these NVLinks alone, whatever goes on elsewhere. They are all NVLinks of some GPUs,
  // which no NVLink joins to others. Precondition of adding: nothing was lost on them.
  void VisitNvlinks(std::span<const LinkId> links, StateArchive& archive);
  // Visits the links between GPUs, their NICs and one switch alone.
  void VisitNicLinks(std::span<const LinkId> links, StateArchive& archive);
  void VisitCounters(StateArchive& archive);

  // Partitions of switches' buffers (SharedBuffers).
  using NotApart = SharedBuffers::NotApart;
  bool BeginApart(DeviceId device) { return buffers_.BeginApart(device); }
  void EndApart(DeviceId device) { buffers_.EndApart(device); }
  bool BeginAhead(DeviceId device, const std::vector<LinkId>& links) {
    return buffers_.BeginAhead(device, links);
  }
  void EndAhead(DeviceId device) { buffers_.EndAhead(device); }

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

  // Settings to records (configure.cc).
  void AddBuffer(DeviceId device);
  void ConfigureArrival(const LinkProperties& properties, const Device& target, Link& link) const;
  void ConfigureLink(LinkId id);
  const BufferSettings& SettingsOf(DeviceId device) const;

  // A hop (fabric_network.cc).
  PacketSink& SinkOf(uint32_t index) {
    return *sinks_[static_cast<size_t>(tables_.packets[index].kind)];
  }
  static void HandleArrival(void* self, uint32_t index);
  void Arrive(uint32_t index);
  // The device at the far end takes an arrived packet.
  [[gnu::always_inline]] void TakeIn(uint32_t index);
  void LeaveDevice(uint32_t index);
  void Transmit(uint32_t index);
  [[gnu::always_inline]] void Forward(uint32_t index);
  [[gnu::always_inline]] void ForwardOn(uint32_t index, LinkId link);
  void ReturnCredit(VirtualChannelId channel, uint32_t wire_bytes) {
    if (accounts_.GiveBackCredit(channel, wire_bytes)) [[unlikely]]
      WakeForCredit(channel);
  }

  // A hop on which something is decided (special_hops.cc).
  static void HandleDeparture(void* self, uint32_t link);
  static void HandlePauseFrame(void* self, uint32_t frame);
  static void HandleHoldCheck(void* self, uint32_t channel);
  static void HandleLateArrival(void* self, uint32_t link);
  bool ArriveSpecially(uint32_t index);  // false if the packet was lost, or is held
  void TakeInLate(uint32_t index);
  void ArriveAtCombiningSwitch(uint32_t index);
  // At a switch that balances: the packet's next link. False if the packet was lost.
  bool ChooseNextLink(uint32_t index);
  // The packet, about to join its link's queue, takes its class there.
  void AssignClass(Packet& packet);
  void TransmitSpecially(uint32_t index);
  // Behind what the port holds, in the form it can take.
  void SendSpecially(uint32_t index);
  // False if they dropped the packet; FindsRoomAtNic() before the NIC takes it in, for a transport
  // acknowledges nothing that may still be lost in a full buffer.
  bool AdmitToLossless(uint32_t index);
  bool AdmitToLossy(uint32_t index);
  bool FindsRoomAtNic(uint32_t index);
  void SendPauseFrame(PauseFrame frame);
  void MarkAbove(Packet& packet, int64_t backlog_ps);
  bool IsHeldBack(uint32_t index);  // true: comes later
  void Lose(uint32_t index, DropReason reason);
  void WakeForCredit(VirtualChannelId channel);
  // Tells every sink once that a link is no longer held.
  void TellReleased(LinkId link);

  // State at rest (network_snapshot.cc) and conservation (conservation.cc).
  void VisitLink(LinkId id, StateArchive& archive);
  void VisitPortOf(LinkId id, StateArchive& archive);
  void VisitHistory(LinkId id, StateArchive& archive);
  NetworkCounters SumOverNvlinks(std::span<const LinkId> links) const;
  // The second argument: whether the packet is timed (it is on the link, or will be).
  void ForEachPacketOn(LinkId id, const std::function<void(uint32_t, bool)>& visit) const;

  // Every hop touches these.
  FabricTables tables_;
  ChannelAccounts accounts_;
  PathTable paths_;
  std::array<PacketSink*, kPacketKindCount> sinks_{};
  const char* links_base_ = nullptr;  // for the engine's prefetches
  bool was_sent_on_ = false;
  // Special ones touch these.
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
  std::vector<ns3::Ptr<Switch>> switches_;  // by device
  uint64_t trajectory_hash_ = 0;
  uint64_t conditions_ = 0;

  ns3::TracedCallback<const PacketDropped&> packet_dropped_;
  ns3::TracedCallback<const LinkStateChanged&> link_state_changed_;
  ns3::TracedCallback<const PauseSent&> pause_sent_;
  ns3::TracedCallback<const EcnMarked&> ecn_marked_;
};

}  // namespace railyard
