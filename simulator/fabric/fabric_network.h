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
// Two forms. A port that is a plain FIFO knows each packet's arrival at the far end when the packet
// joins it: one event per hop (short form). A port whose data may be paused, lacks credit or is
// overtaken takes an event for each departure, too (general form). Ports change between the two
// whenever they have to; no result depends on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/buffer/buffer_settings.h"
#include "simulator/fabric/buffer/shared_buffer.h"
#include "simulator/fabric/link/hold_report.h"
#include "simulator/fabric/link/link_record.h"
#include "simulator/fabric/packet.h"
#include "simulator/fabric/packet_pool.h"
#include "simulator/fabric/port/load_balancer.h"
#include "simulator/fabric/port/port.h"
#include "simulator/fabric/port/switch.h"
#include "simulator/fabric/port/switch_group.h"
#include "simulator/fabric/telemetry.h"
#include "simulator/state/state_registry.h"
#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {

// A path of the fabric: the index of its first link in the network's table, and their number. A
// path of no links leads nowhere.
struct PathRef {
  uint32_t first = 0;
  uint8_t hop_count = 0;
};

// Who receives packets. A packet handed over stays the network's until the sink frees it or sends
// it on; a dropped one is freed by the network after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // At a NIC, from the wire.
  virtual void OnPacketAtNic(uint32_t packet) = 0;
  // In a GPU's or a host's memory, at the end of its path.
  virtual void OnPacketInMemory(uint32_t packet) = 0;
  virtual void OnPacketDropped(uint32_t packet, DropReason reason, LinkId link) = 0;
  // A link out of a NIC or GPU that was held (FabricNetwork::IsHeld) is so no more.
  virtual void OnLinkReleased(LinkId /*link*/) {}
};

// What keeps a receiver's buffer from overflowing.
enum class FlowControl : uint8_t {
  kNone,     // nothing: what finds no room is dropped
  kPfc,      // pause frames, IEEE 802.1Qbb
  kCredits,  // the sender counts what the receiver has room for: InfiniBand, NVLink
};

// Which form ports take. Results are the same.
enum class PortForm : uint8_t {
  kShort,    // the short one wherever it is exact
  kGeneral,  // always the general one
};

// What crossed one direction of a link. Bytes count when the last bit arrives.
struct LinkCounters {
  uint64_t payload_bytes = 0;        // first transmissions of data
  uint64_t header_bytes = 0;         // everything that is not payload of data
  uint64_t retransmitted_bytes = 0;  // payload sent again
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;  // lost on the link
  int64_t paused_ps = 0;         // its data by pause frames, up to now, all classes added up
};

struct NetworkCounters {
  uint64_t packets = 0;         // data packets injected
  uint64_t packet_hops = 0;     // data packets times links crossed
  uint64_t control_hops = 0;    // the same of all other packets
  uint64_t injected_bytes = 0;  // payload of data, every transmission
  uint64_t delivered_bytes = 0;
  uint64_t replicated_bytes = 0;  // added by NVSwitches that multicast
  uint64_t reduced_bytes = 0;     // taken out by NVSwitches that combine
  std::array<uint64_t, kDropReasonCount> dropped_packets{};
  std::array<uint64_t, kDropReasonCount> dropped_bytes{};  // payload of data
  uint64_t ecn_marked = 0;                                 // marks that switches set
  uint64_t xoff_frames = 0;
  uint64_t xon_frames = 0;
  int64_t pfc_pause_ps = 0;   // sum over links of the pauses that are over
  uint64_t general_hops = 0;  // transmissions in the general form
  uint64_t draws = 0;         // by which packets were marked, lost or held back, or not
  uint64_t dropped_data_bytes() const;
};

struct PacketDropped {
  int64_t time_ps;
  const Packet* packet;
  DropReason reason;
  LinkId link;
};
struct LinkStateChanged {
  int64_t time_ps;
  LinkId link;
  bool up;
};
struct PauseSent {
  int64_t time_ps;
  LinkId link;  // whose sender shall stop, or go on
  bool xoff;
};
struct EcnMarked {
  int64_t time_ps;
  const Packet* packet;
  LinkId link;  // whose queue it joins
};

class FabricNetwork : public ns3::Object, public StateOwner {
 public:
  static ns3::TypeId GetTypeId();
  FabricNetwork() = default;

  // `graph`, `engine` and the sink must outlive this; the sink is set before the first packet.
  // Reads the attributes, as Configure() does.
  void Build(const FabricGraph& graph, FabricSimulatorImpl& engine);
  void SetSink(PacketSink& sink) { sinks_.fill(&sink); }
  // The same of packets of these kinds.
  void SetSinkOf(std::initializer_list<PacketKind> kinds, PacketSink& sink) {
    for (const PacketKind kind : kinds) sinks_[static_cast<size_t>(kind)] = &sink;
  }
  // Needed where LoadBalancing is another than ECMP. `routing` must outlive this; OnRoutesChanged()
  // is to be called when it has changed.
  void SetRouting(const EcmpRouting& routing);
  void OnRoutesChanged() { load_balancer_.ForgetRoutes(); }
  // One for every switch device; null for any other.
  ns3::Ptr<Switch> GetSwitch(DeviceId device) const { return switches_[device]; }
  // What every NIC keeps of packets from the wire that wait for its link to the host.
  void SetReceiveBuffers(const BufferSettings& settings) { receive_buffers_ = settings; }
  // Reads the attributes of the network and of its switches, and the settings above, again.
  // Precondition: no packet has been injected.
  void Configure();

  // Paths stay valid for the life of the network. `detour_hop`: LosslessClasses::OfPath's.
  PathRef AddPath(const std::vector<LinkId>& links,
                  std::optional<uint32_t> detour_hop = std::nullopt);
  LinkId LinkOfPath(PathRef path, uint32_t hop) const { return paths_[path.first + hop]; }
  std::vector<LinkId> LinksOfPath(PathRef path) const {
    const auto first = paths_.begin() + path.first;
    return {first, first + path.hop_count};
  }

  // GPUs for which NVSwitches multicast and combine; `up_links` lead from all of them, and from
  // whoever sends to them, to those NVSwitches. Groups are numbered from 0; a packet's `flow` names
  // its group.
  //  - kNvlinkMulticast and kNvlinkReadRequest: the first link of the path is followed, in the
  //  table
  //    of paths, by the links to the group's GPUs; each gets a copy, whose `tag` is which it is
  //    for.
  //  - kNvlinkOperand: of all with one `sequence` only the last goes on, as the result.
  uint32_t AddSwitchGroup(uint16_t gpu_count, const std::vector<LinkId>& up_links);

  // A switch of an aggregation tree (InfiniBand's SHARP); a packet's `flow` names the node it is on
  // its way to.
  //  - kAggregateOperand: of all with one `sequence`, one over each of `down`, only the last goes
  //  on:
  //    up, or, at the root, as the result down.
  //  - kAggregateResult: each of `down` gets a copy.
  // Operands may be empty but for that of the member that `acknowledged` names: what goes on from
  // the first node above it has its payload (`echo`). With kForOne only that member gets it.
  struct AggregationNode {
    struct Next {
      LinkId link = 0;    // to another node, or to a NIC
      uint32_t flow = 0;  // what packets over it name: its node, or what is the NIC's own matter
      std::vector<uint32_t> members{};  // of `down`: whose NICs are there, ascending
    };
    std::vector<Next> down;
    std::optional<Next> up{};  // none: the root
  };
  uint32_t AddAggregationNode(AggregationNode node);
  uint32_t aggregation_node_count() const {
    return static_cast<uint32_t>(aggregation_nodes_.size());
  }

  // May move all packets, as may Inject(): references to packets end here.
  uint32_t AllocatePacket() { return packets_.Allocate(); }
  void FreePacket(uint32_t index) { packets_.Free(index); }
  Packet& packet(uint32_t index) { return packets_[index]; }
  uint64_t live_packets() const { return packets_.live_count(); }
  // Payload of data packets under way, by walking the pool.
  uint64_t InFlightBytes() const { return packets_.PayloadBytes(); }

  // Puts a packet, with path, bytes and kind set and hop 0, on its first link. A path of no links
  // drops it (NO_ROUTE).
  void Inject(uint32_t index);
  // Have the cache ready for what is sent next, over a link or along a path of the table, and for
  // packets that arrive: records of the table are named by Packet::flow.
  void FetchLink(LinkId link) const { __builtin_prefetch(&links_[link], 1); }
  void FetchPath(uint32_t first_link) const { __builtin_prefetch(&paths_[first_link]); }
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
    counters_.delivered_bytes += DataBytes(packets_[index]);
    FreePacket(index);
  }
  // The sink will not take a packet; frees it.
  void Drop(uint32_t index, DropReason reason, LinkId link);

  // A direction of a link goes down or comes back, now. What is on the wire at that moment is lost.
  void SetLinkUp(LinkId link, bool up);
  bool IsLinkUp(LinkId link) const { return is_up_[link]; }
  // Whether pause frames or a storm keep data from starting on it.
  bool IsPaused(LinkId link) const;
  // From now on packets start at this rate; one that has started keeps its own.
  void SetLinkRate(LinkId link, uint64_t rate_bps);
  uint64_t RateBps(LinkId link) const { return rates_bps_[link]; }
  int64_t TransmissionPs(LinkId link, uint32_t wire_bytes) const {
    return TransferTimePs(wire_bytes, rates_bps_[link]);
  }
  // Time the link's port takes to send all it holds if nothing holds it up.
  int64_t BacklogPs(LinkId link) const;
  int64_t BusyUntilPs(LinkId link) const { return engine_->NowPs() + BacklogPs(link); }
  // Data of the link's port is paused, or waits for credit. Ends with OnLinkReleased().
  bool IsHeld(LinkId link) const { return is_held_[link] != 0; }
  // Sum of propagation and forwarding latency along a path, and of the serialisation of one packet
  // at each hop.
  int64_t PathLatencyPs(PathRef path, uint32_t wire_bytes) const;
  // Of a path to a GPU's memory: how many of its links lead to the NIC there.
  uint32_t LinksToNic(PathRef path) const;

  // A link loses each packet for which `is_lost` answers true, asked as its last bit arrives
  // (BIT_ERROR).
  using LossFilter = std::function<bool(const Packet&)>;
  void SetLossFilter(LinkId link, LossFilter is_lost);
  // When the packet's last bit reaches, or reached, the far end of the cable it is on.
  int64_t LastBitPs(const Packet& packet) const {
    return DeparturePs(packet) + graph_->link(packet.link).propagation_ps;
  }

  // A link holds each packet that arrived, whole, for as long as `extra_delay_ps` answers, and
  // longer where it would overtake: packets of one link stay in order. Pause frames are not held.
  using DelayFilter = std::function<int64_t(const Packet&)>;
  void SetDelayFilter(LinkId link, DelayFilter extra_delay_ps);

  // A filter drew, or counted: what it does next is no function of the network's state.
  void NoteDraw() { ++counters_.draws; }
  // Which faults hold, as one number: what is at rest under others is in another state.
  void SetConditions(uint64_t conditions) { conditions_ = conditions; }
  uint64_t conditions() const { return conditions_; }

  // The device at the link's far end sends pause frames without pause, from now on or no more: the
  // link's data waits, whatever its buffers say. Not counted among pause frames.
  void SetPauseStorm(LinkId link, bool storms);

  // From now on data packets collect what the switches on their way write into them.
  void EnableTelemetry();
  // Of a packet: what it collected. Empty without EnableTelemetry().
  std::span<const HopTelemetry> Telemetry(uint32_t packet) const;
  void CopyTelemetry(uint32_t from, uint32_t to);

  LinkCounters CountersOfLink(LinkId link) const;
  int64_t PausedPs() const;  // NetworkCounters::pfc_pause_ps, and what has not ended up to now
  const NetworkCounters& counters() const { return counters_; }
  // Of all transmissions, those in the short form: one event.
  double ShortFormShare() const;
  // Over (time, link, kind, flow, sequence) of every arrival, in order; 0 unless the attribute
  // TrajectoryHash was set.
  uint64_t trajectory_hash() const { return trajectory_hash_; }
  const std::vector<HoldReport>& hold_reports() const { return hold_reports_; }
  // Bytes a device keeps of packets that came in by `link`, or that were sent on it and for which
  // no credit came back; what they may be at most in its headroom; whether its sender is told to
  // pause.
  uint64_t AccountBytes(LinkId link);
  uint64_t HeadroomBytesOfLink(LinkId link) const { return pauses_[link].headroom_bytes_max; }
  bool IsXoff(LinkId link) const { return pauses_[link].is_xoff; }

  // Stops the program unless, for every link, packets put on it = arrived + lost + still on it; for
  // every switch, packets in = put on its links + dropped; and every account equals the packets it
  // is of.
  void CheckConservation() const;
  FabricSimulatorImpl& engine() { return *engine_; }

  // What of the network decides what comes once no packet is under way, and its counters
  // (rest.cc).
  std::string state_name() const override { return "the network's queues and links"; }
  void Visit(StateArchive& archive) override;
  // The same of these NVLinks alone, whatever goes on elsewhere: all of some GPUs, which no NVLink
  // joins to others. Preconditions of adding: nothing was lost on them.
  void VisitNvlinks(std::span<const LinkId> links, StateArchive& archive);
  // The same of links between GPUs, their NICs and one switch; and the counters of all.
  void VisitNicLinks(std::span<const LinkId> links, StateArchive& archive);
  void VisitCounters(StateArchive& archive);

  // What was simulated at different times had something to do with one another.
  class NotApart : public std::exception {};
  // From now on what is simulated has a share of the switch's shared buffer, and what is taken to
  // happen there besides, over links of its own, one too: so small that nothing is decided there.
  // NotApart is thrown once it leaves that share; false: it is outside it even now. Several may
  // ask, each of whom has it end (apart.cc).
  bool BeginApart(DeviceId device);
  void EndApart(DeviceId device);
  // The same for what RunAhead() runs, over these links: it has the other share.
  bool BeginAhead(DeviceId device, const std::vector<LinkId>& links);
  void EndAhead(DeviceId device);

 private:
  using Link = LinkRecord;

  // Only of links that lost something, went down or changed their rate.
  struct Downtime {
    int64_t from_ps;
    int64_t until_ps;
  };
  struct RateChange {
    int64_t departure_ps;  // of the last packet at the rate before
    uint64_t rate_before_bps;
  };
  // What an NVSwitch made of what came by one link.
  struct InSwitchCounters {
    uint64_t replicated_bytes = 0;
    uint64_t reduced_bytes = 0;
    uint64_t requests = 0;        // that asked for operands
    uint64_t request_copies = 0;  // that went on
    uint32_t packets = 0;         // copies less operands taken, modulo 2^32
  };
  struct LatePacket {
    uint32_t packet;
    int64_t release_ps;
  };
  struct ColdLink {
    std::vector<Downtime> downtimes;
    std::vector<RateChange> rate_changes;
    LossFilter is_lost;
    DelayFilter extra_delay_ps;
    std::deque<LatePacket> late;  // held, in order
    uint64_t retransmitted_bytes = 0;
    uint64_t dropped_packets = 0;
  };

  // What ns-3's attributes are bound to: its enumerations are integers.
  void SetForm(PortForm form) { form_ = form; }
  int GetForm() const { return static_cast<int>(form_); }
  void SetFlowControl(FlowControl control) { network_flow_control_ = control; }
  int GetFlowControl() const { return static_cast<int>(network_flow_control_); }
  void SetLoadBalancing(LoadBalancing policy) { load_balancing_ = policy; }
  int GetLoadBalancing() const { return static_cast<int>(load_balancing_); }

  // Virtual channels (lossless_classes.cc): a link in one lossless class. Those of class 0 have the
  // numbers of their links.
  VirtualChannelId ChannelOf(LinkId link, uint32_t lossless_class) const {
    return lossless_class * graph_->link_count() + link;
  }
  LinkId LinkOf(VirtualChannelId channel) const { return channel % graph_->link_count(); }
  uint32_t LosslessClassOf(VirtualChannelId channel) const {
    return channel / graph_->link_count();
  }
  // Of the link that the packet is on or waits for.
  uint32_t LosslessClassOf(const Packet& packet) const {
    return (links_[packet.link].send_flags & Link::kClassed) != 0 ? packet.tag : 0;
  }
  VirtualChannelId ChannelOn(const Packet& packet) const {
    return ChannelOf(packet.link, LosslessClassOf(packet));
  }
  uint32_t ClassCountOf(LinkId link) const {
    return (links_[link].send_flags & Link::kClassed) != 0 ? classes_->count() : 1;
  }
  // The packet, about to join its link's queue, takes its class there.
  void AssignClass(Packet& packet);

  // Settings to records (configure.cc).
  void AddBuffer(DeviceId device);
  void ConfigureArrival(const LinkProperties& properties, const Device& target, Link& link) const;
  void ConfigureLink(LinkId id);
  const BufferSettings& SettingsOf(DeviceId device) const;

  PacketSink& SinkOf(uint32_t index) { return *sinks_[static_cast<size_t>(packets_[index].kind)]; }
  // Tells every sink once that a link is no longer held.
  void TellReleased(LinkId link);

  // A hop (fabric_network.cc).
  static void HandleArrival(void* self, uint32_t index);
  void Arrive(uint32_t index);
  bool ArriveSpecially(uint32_t index);  // false if the packet was lost, or is held
  // What arrived is the far end's.
  [[gnu::always_inline]] void TakeIn(uint32_t index);
  void TakeInLate(uint32_t index);
  // At a switch that balances: the packet's next link. False if the packet was lost.
  bool ChooseNextLink(uint32_t index);
  void LeaveDevice(uint32_t index);
  bool EntersCalmly(const Packet& packet);
  void Transmit(uint32_t index);
  [[gnu::always_inline]] void Forward(uint32_t index);
  [[gnu::always_inline]] void ForwardOn(uint32_t index, LinkId link);
  void TransmitSpecially(uint32_t index);
  // Behind what the port holds, in the form it can take.
  void SendSpecially(uint32_t index);
  void SendInShortForm(uint32_t index) {
    Packet& packet = packets_[index];
    SendInShortForm(index, packet, links_[packet.link]);
  }
  void SendInShortForm(uint32_t index, Packet& packet, Link& link);
  // Behind the packet in service, in a port of the short form.
  bool SomethingWaits(LinkId id) const;
  // Out of line, like all that is rare: the hot path keeps its registers.
  [[gnu::noinline]] int64_t LearnTransmission(LinkId id, uint32_t wire_bytes);
  int64_t DeparturePs(const Packet& packet) const {
    return packet.arrival_ps - links_[packet.link].delay_ps;
  }
  // Timed and not yet arrived, the last one first.
  template <typename Visit>
  void ForEachTimed(const Link& link, Visit visit) const {
    uint32_t index = link.last;
    for (uint32_t left = link.timed; left > 0; --left) {
      const uint32_t before = packets_[index].next;
      visit(index);
      index = before;
    }
  }
  template <typename Visit>
  void ForEachWaiting(const Port& port, Visit visit) const {
    const auto visit_all = [&](const PacketQueue& queue) {
      for (uint32_t i = queue.first; i != Packet::kNone; i = packets_[i].next) visit(i);
    };
    visit_all(port.control);
    for (const DataQueue& queue : port.data) visit_all(queue);
  }
  // The packet in its place among those on the link; its arrival is known.
  void AppendTimed(Link& link, uint32_t index, Packet& packet);

  // Groups and aggregation trees (in_switch.cc).
  struct CombiningNode {
    AggregationNode node;
    SwitchGroup operands;
  };
  void ArriveAtCombiningSwitch(uint32_t index);
  void ReplicateInNvSwitch(uint32_t index);
  void TakeAggregateOperand(uint32_t index);
  uint32_t Refill(uint32_t index);
  void SendDown(uint32_t index);
  template <typename Links>
  uint16_t LongestOf(uint16_t copies, const Links& link_of) const;
  template <typename Links, typename Address>
  void Replicate(uint32_t index, uint16_t copies, uint16_t last, const Links& link_of,
                 const Address& address);
  void TakeOperand(uint32_t index);

  // General form (general_form.cc).
  static void HandleDeparture(void* self, uint32_t link);
  Port& PortOf(LinkId id);
  bool IsShort(LinkId id) const { return (links_[id].send_flags & Link::kGeneralForm) == 0; }
  void LeaveShortForm(LinkId id);
  bool MayReturn(LinkId id, const Port& port) const;
  void ReturnToShortForm(LinkId id, Port& port);
  void Enqueue(uint32_t index);
  void Append(Port& port, uint32_t index);
  uint32_t PopControl(Port& port);
  uint32_t PopData(Port& port, uint32_t lossless_class);
  // Starts the next packet that may. Precondition: none is in service.
  void StartNext(LinkId id, Port& port);
  void Start(LinkId id, Port& port, uint32_t index);
  // Something that held the port up has ended: goes on in the form it may take.
  void Resume(LinkId id, Port& port);
  // When the packet in service, if there is one, has left; else now.
  int64_t ServiceEndPs(LinkId id) const;

  // Buffers (buffering.cc).
  // The packet, already in its ingress's account, brought the pool out of its calm: decides. False
  // if it dropped the packet.
  bool AdmitToLossless(uint32_t index);
  // Before the packet is in any account. False if it dropped the packet.
  bool AdmitToLossy(uint32_t index);
  // A packet has arrived at a NIC whose receive buffer may drop. Whether what of it goes on to the
  // host finds room there; where it does not, the packet is dropped before the NIC takes it in, for
  // a transport acknowledges nothing that may still be lost in a full buffer.
  bool FindsRoomAtNic(uint32_t index);
  bool HasLossyRoom(LinkId egress, uint32_t bytes);
  void DropForLackOfRoom(uint32_t index, LinkId egress);
  bool IsInLossyBuffer(const Packet& packet) const;
  void LeaveLossyBuffer(const Packet& packet) {
    if (IsInLossyBuffer(packet)) egress_bytes_[packet.link] -= packet.wire_bytes;
  }
  // The packet has left the device it waited in.
  void CountOut(Packet& packet);
  // Counts out all that has left the buffer: its accounts are exact.
  void Settle(uint32_t buffer);
  void SettleLinks(const std::vector<LinkId>& links);
  void NoteVainSettle(uint32_t buffer);
  // Every port of the buffer takes departure events, from now on.
  void MakeEventful(uint32_t buffer);
  bool IsEventful(uint32_t buffer) const { return buffers_[buffer].IsEventful(engine_->NowPs()); }

  // Pauses and credits (flow_control.cc).
  int64_t PauseUpToNowPs(const Port& port) const;  // of pauses that have not ended
  static void HandlePauseFrame(void* self, uint32_t frame);
  void SendXoff(VirtualChannelId ingress);
  void SendXons(uint32_t buffer);  // to all that may go on
  void SendPauseFrame(VirtualChannelId ingress, bool xoff);
  void SetPaused(LinkId id, uint32_t lossless_class, bool paused);
  bool HasCredit(VirtualChannelId channel, uint32_t wire_bytes) const;
  bool TakeCredit(VirtualChannelId channel, uint32_t wire_bytes);  // false: there is none
  // Of the link it is on or waits for.
  uint32_t CreditBytesOf(const Packet& packet) const;
  void ReturnCredit(VirtualChannelId channel, uint32_t wire_bytes);
  void WakeForCredit(VirtualChannelId channel);
  void BeginHold(LinkId id, Port& port, uint32_t lossless_class);
  // One of the port's holds is over: goes on, and tells the sink if it was the last.
  void EndHold(LinkId id, Port& port);

  // Holds that last (hold_check.cc).
  static void HandleHoldCheck(void* self, uint32_t channel);
  std::vector<VirtualChannelId> FindCycle(VirtualChannelId channel) const;
  bool WaitsFor(VirtualChannelId waiting, VirtualChannelId held) const;
  std::string NameOf(VirtualChannelId channel) const;

  // Marking (marking.cc) and telemetry (telemetry.cc) of a packet about to join its link's queue.
  void SetMarking(LinkId id);
  int64_t MarkingStartPs(LinkId id) const;
  void MarkAbove(Packet& packet, int64_t backlog_ps);
  void ClearTelemetry(uint32_t index);
  void StampTelemetry(uint32_t index, int64_t backlog_ps);

  // Extra delay (link_delay.cc).
  static void HandleLateArrival(void* self, uint32_t link);
  bool IsHeldBack(uint32_t index);  // true: comes later

  // Losses on a link (link_state.cc).
  // Drops the packet that arrives if its link loses it.
  bool IsLost(uint32_t index);
  void Lose(uint32_t index, DropReason reason);
  void ForgetPast(LinkId id);
  bool WasDown(const Packet& packet, const ColdLink& cold) const;

  // Apart (apart.cc).
  void LimitApart(uint32_t buffer);
  void StayApart(uint32_t buffer);

  // Rest (rest.cc).
  static void Visit(Port& port, StateArchive& archive);
  void VisitPortOf(LinkId id, StateArchive& archive);
  void VisitCold(LinkId id, StateArchive& archive);
  static void Visit(InSwitchCounters& counters, StateArchive& archive);
  void Visit(LinkId id, StateArchive& archive);
  NetworkCounters SumOverNvlinks(std::span<const LinkId> links) const;

  // Conservation (conservation.cc).
  // The second argument: whether the packet is timed (it is on the link, or will be).
  void ForEachPacketOn(LinkId id, const std::function<void(uint32_t, bool)>& visit) const;

  const FabricGraph* graph_ = nullptr;
  std::optional<LosslessClasses> classes_;
  FabricSimulatorImpl* engine_ = nullptr;
  std::array<PacketSink*, kPacketKindCount> sinks_{};
  // Touched by every hop.
  std::vector<Link> links_;
  PacketPool packets_;
  std::vector<LinkId> paths_;
  std::vector<uint8_t> path_classes_;     // where there are several, of each of paths_
  const char* links_base_ = nullptr;      // for the engine's prefetches
  std::vector<IngressAccount> accounts_;  // by virtual channel
  std::vector<Pool> pools_;               // by buffer; 0: of the links that end in none
  NetworkCounters counters_;
  bool was_sent_on_ = false;
  // Touched by special ones.
  std::vector<SharedBuffer> buffers_;
  std::vector<uint32_t> buffer_of_device_;
  std::vector<uint32_t> buffer_of_source_;  // by link: the buffer its port sends out of
  std::vector<IngressPause> pauses_;        // by virtual channel
  std::vector<uint32_t> egress_bytes_;      // by link: what its port holds of a lossy buffer
  std::vector<uint64_t> joined_bytes_;      // by link: of data ever, with telemetry
  std::vector<uint8_t> is_held_;            // by link
  std::vector<bool> is_up_;                 // by link
  std::vector<uint64_t> rates_bps_;         // by link
  std::vector<uint32_t> port_of_link_;
  std::deque<Port> ports_;  // stay where they are as more are made
  std::unordered_map<LinkId, ColdLink> cold_links_;
  std::vector<SwitchGroup> groups_;
  std::vector<CombiningNode> aggregation_nodes_;
  std::vector<InSwitchCounters> in_switch_;  // by link; none without groups or nodes
  std::vector<PacketTelemetry> telemetry_;   // by packet; none unless enabled
  std::vector<HoldReport> hold_reports_;
  std::vector<uint32_t> leaving_;  // LeaveShortForm's
  uint64_t trajectory_hash_ = 0;
  // Settings.
  std::vector<ns3::Ptr<Switch>> switches_;  // by device
  BufferSettings receive_buffers_ = kReceiveBufferDefaults;
  PortForm form_ = PortForm::kShort;
  bool hashes_trajectory_ = false;
  FlowControl network_flow_control_ = FlowControl::kPfc;
  uint32_t credit_bytes_ = 0;
  uint32_t nvlink_credit_bytes_ = 0;
  uint32_t pcie_credit_bytes_ = 0;
  int64_t pause_response_ps_ = 0;
  int64_t storm_threshold_ps_ = 0;
  uint64_t seed_ = 0;
  LoadBalancing load_balancing_ = LoadBalancing::kEcmp;
  int64_t flowlet_gap_ps_ = 0;
  LoadBalancer load_balancer_;
  uint64_t conditions_ = 0;
  bool telemetry_enabled_ = false;

  ns3::TracedCallback<const PacketDropped&> packet_dropped_;
  ns3::TracedCallback<const LinkStateChanged&> link_state_changed_;
  ns3::TracedCallback<const PauseSent&> pause_sent_;
  ns3::TracedCallback<const EcnMarked&> ecn_marked_;
};

inline void FabricNetwork::AppendTimed(Link& link, uint32_t index, Packet& packet) {
  packet.next = link.last;
  link.last = index;
  ++link.timed;
}

inline void FabricNetwork::SendInShortForm(uint32_t index, Packet& packet, Link& link) {
  const int64_t transmission_ps = packet.wire_bytes == link.usual_wire_bytes
                                      ? link.usual_transmission_ps
                                      : LearnTransmission(packet.link, packet.wire_bytes);
  link.busy_until_ps = std::max(link.busy_until_ps, engine_->NowPs()) + transmission_ps;
  packet.arrival_ps = link.busy_until_ps + link.delay_ps;
  AppendTimed(link, index, packet);
  engine_->ScheduleFabric(packet.arrival_ps, event_order::kArrival, packet.link, index);
}

inline bool FabricNetwork::HasCredit(VirtualChannelId channel, uint32_t wire_bytes) const {
  const uint32_t used = accounts_[channel].bytes;
  return used == 0 || used + wire_bytes <= accounts_[channel].credit_limit();
}

inline bool FabricNetwork::TakeCredit(VirtualChannelId channel, uint32_t wire_bytes) {
  if (!HasCredit(channel, wire_bytes)) return false;
  accounts_[channel].bytes += wire_bytes;
  return true;
}

inline uint32_t FabricNetwork::CreditBytesOf(const Packet& packet) const {
  const bool has =
      accounts_[packet.link].has_credits && ClassOf(packet.kind) == TrafficClass::kData;
  return has ? packet.wire_bytes : 0;
}

inline void FabricNetwork::ReturnCredit(VirtualChannelId channel, uint32_t wire_bytes) {
  accounts_[channel].bytes -= wire_bytes;
  if (accounts_[channel].is_waited_for) [[unlikely]]
    WakeForCredit(channel);
}

}  // namespace railyard
