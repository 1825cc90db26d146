// SPDX-License-Identifier: GPL-2.0-only
// Carries messages inside a server. Between GPUs of one NVLink island the sender's stores cross the
// planes of NVSwitches packet by packet, in the ratio of the pair's links to each plane, and need
// no acknowledgement. Each program's messages visit the planes in turn, beginning with the plane of
// the connection's first message; a GPU's connections start at different planes (ADR 0092). Between
// other GPUs stores cross PCIe (posted writes), as do stores into a host's memory. GPUs load from
// host memory by non-posted reads: for every packet a request goes up, and the packet comes back.
//
// A GPU serves its active connections in turn, in bursts, at the raw rate of its links to the
// planes. Connections over PCIe are served at the rate of its PCIe link, and loads separately,
// since they use the opposite direction. Link-level replay is part of the links' efficiency, and
// over PCIe of their rate. A packet lost on a dead link is an error that the GPU reports and
// nothing repairs (NVIDIA Xid 74 and 79), so it breaks the connection.
//
// Groups (nvlink_groups.cc) model NVLink SHARP. NVSwitches send a GPU's stores to every member, or
// combine one packet of each member into the answer to a GPU's load. Such a load is a request to
// every member. A member's operands then share its port with its other connections. The sum may be
// stored to a group while it arrives. Not modelled: separate requests for all loads (here a message
// has one), and the limited number of operands that an NVSwitch can hold (here the first operands
// wait without limit).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/flow/flow_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/units/divide_up.h"

namespace railyard {

class LoadStoreTransport final : public PacketSink, public PipeUser, public StateOwner {
 public:
  // At most this many messages are in flight on one connection: NCCL's slots (NCCL_STEPS).
  static constexpr uint32_t kMessageSlots = 8;

  // Registers the events of its ports with the engine, which allows one instance at a time. Ports
  // are numbered by GPU; if there is PCIe between GPUs, NVLink, stores and loads have separate
  // ranges.
  LoadStoreTransport(const FabricGraph& graph, FabricNetwork& network);

  // Makes messages flows of this network instead of packets. Precondition: no flow was opened.
  void CarryByFlows(FlowNetwork& flows) { carriers_ = &flows; }

  // Opens a flow of stores between two GPUs, given by number, over NVLink, or over PCIe if no
  // NVLink joins them. Returns the flow's number, dense from 0.
  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu);
  // Opens a flow of stores of a GPU into the memory at the host bridge nearest to `owner_gpu`, or
  // of loads of a GPU from the memory at its own host bridge.
  FlowId OpenHostStore(const SinkRef& sink, GpuIndex source_gpu, GpuIndex owner_gpu);
  FlowId OpenHostLoad(const SinkRef& sink, GpuIndex gpu);
  // Posts a message. An idle port sends at the next ServeDue(), which must be called within the
  // same event. Preconditions: fewer than kMessageSlots messages of the flow are undelivered, and 0
  // < bytes < 4 GiB.
  void Post(FlowId flow, const MessageSize& size);
  // Sends at all idle ports for which messages were posted since the last call.
  void ServeDue();
  // Must be called when a program begins to use the flow or group, all of whose messages have been
  // sent: its packets then start on the same plane as at first.
  void StartOver(FlowId flow) { flows_[flow].position = flows_[flow].start; }
  void StartGroupOver(FlowId group);
  // Prefetches the links that the flow's next packets use, ahead of Post().
  void FetchLinks(FlowId flow) const;

  // Returns whether there are at least two GPUs, given by number, and an NVSwitch joins all of
  // them.
  bool CanGroup(std::span<const GpuIndex> gpus) const;
  struct GroupMember {
    GpuIndex gpu{0};
    SinkRef sink;  // called when the message is in this GPU's memory
  };
  // Opens a group for stores of `head_gpu` into the memories of all members, which may include it.
  // Returns the group's number, dense from 0 over both kinds. Precondition: CanGroup() is true for
  // all members.
  FlowId OpenMulticast(GpuIndex head_gpu, const std::vector<GroupMember>& members);
  // Opens a group for loads of `head_gpu` that sum over the members. `sink` receives a callback for
  // each sum that has arrived.
  FlowId OpenReduce(const SinkRef& sink, GpuIndex head_gpu, const std::vector<GpuIndex>& members);
  // Works like Post(). A slot is free when every member has the message. Each member receives
  // `bytes`.
  void PostMulticast(FlowId group, uint64_t bytes);
  // Requests a sum; the operands must be in the members' memories. A slot is free when the head has
  // the sum, of `bytes`. ServeDue() need not follow.
  void PostReduce(FlowId group, uint64_t bytes);
  // Works like PostReduce(). In addition, the head stores each packet of the sum but the last to
  // the members of `copies` when it arrives. PostMulticast() with the same `bytes` must follow when
  // the head has the sum; it stores the rest. Precondition: no other sum is on its way to `copies`.
  void PostReduceTo(FlowId copies, FlowId group, uint64_t bytes);

  void OnPacketAtNic(PacketId packet) override;
  void OnPacketInMemory(PacketId packet) override;
  void OnPacketDropped(PacketId packet, DropReason reason, LinkId link) override;

  void OnLeft(uint32_t flow) override;
  void OnAllLeft() override;
  void OnArrived(uint32_t flow) override;

  std::string state_name() const override { return "NVLink and PCIe flows"; }
  void Visit(StateArchive& archive) override;
  // Visits only the flows on which these GPUs send.
  void VisitGpus(std::span<const GpuIndex> gpus, StateArchive& archive);

  TimingWheel::PrefetchTable FlowTable() const { return {&flows_base_, sizeof(Flow)}; }
  // Returns the flows that send from a GPU, given by number, in the order in which they were
  // opened.
  std::span<const FlowId> FlowsOf(GpuIndex gpu) const { return flows_of_gpu_[gpu]; }
  // Returns the user of the flow, or the first user of a group's flow.
  SinkRef FirstUserOf(FlowId flow) const;
  // Holds the path of a flow over one plane and the plane's weight, for bounds and ledgers.
  struct PlanePath {
    PathRef path;
    uint32_t weight;
  };
  std::vector<PlanePath> PathsOf(FlowId flow) const;
  // Returns the links that the payload crosses over one of the planes.
  std::vector<LinkId> LinksOf(FlowId flow) const;
  // Returns the links that the payload crosses over all planes, with their shares.
  std::vector<LinkShare> LinkSharesOf(FlowId flow) const;
  uint64_t WireBytes(uint64_t payload_bytes) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // One connection sends this many packets in its turn.
  static constexpr uint32_t kBurstPackets = 4;
  // The links of this many packets are prefetched; messages of a ring of a thousand GPUs have two
  // packets.
  static constexpr uint32_t kFetchedLinks = 2;

  // A read request covers up to 512 bytes (the maximum read request size that Linux configures). It
  // has a header of 16 bytes with a 64-bit address, and 8 bytes of sequence number, LCRC and
  // framing (PCI Express Base Specification 4.0, 2.2 and 3.6).
  static constexpr uint32_t kReadRequestPayloadBytes = 512;
  static constexpr uint32_t kReadRequestWireBytes = 24;
  // A header and its address extension have 16 B each (Foley and Danskin: "Ultra-Performance Pascal
  // GPU and NVLink Interconnect", IEEE Micro 37(2), 2017).
  static constexpr uint16_t kGroupReadRequestWireBytes = 32;
  static constexpr uint32_t ReadRequestWireBytes(uint32_t payload_bytes) {
    return static_cast<uint32_t>(DivideUp(payload_bytes, kReadRequestPayloadBytes)) *
           kReadRequestWireBytes;
  }

  // Holds the order in which consecutive packets use the planes that join a pair. Pairs with the
  // same weights share it.
  struct Interleave {
    std::vector<uint8_t> plane_of_position;
    std::vector<uint32_t> weights;
  };
  enum class Way : uint8_t {
    kPaths,      // over NVLinks
    kAllPlanes,  // over all NVSwitches of both its GPUs, which are the same
    kPcie,
  };
  // A flow fits into one cache line, because every packet accesses its flow.
  struct alignas(64) Flow {
    uint32_t port = 0;
    uint32_t next_active = kNone;
    // For kAllPlanes, this is the index of the destination's first link in down_links_. Otherwise
    // it is the path over plane 0; the path over plane p is path_links * p behind it.
    uint32_t target = 0;
    uint32_t user = 0;  // the user's number of this flow, or the group's number
    uint16_t interleave = 0;
    uint16_t position = 0;  // in the interleaving, of the next packet
    uint8_t posted = 0;     // message counters modulo 256
    uint8_t sent = 0;
    uint8_t delivered = 0;
    bool active : 1 = false;
    bool has_sizes : 1 = false;  // its messages are in sizes_
    uint8_t sink : 6 = 0;        // in sinks_
    uint8_t path_links = 2;  // 1: a cable from GPU to GPU; a group's: one up and all down. A load's
                             // are those of the request; the answer's precede them
    PacketKind kind = PacketKind::kNvlinkWrite;
    Way way = Way::kPaths;
    uint8_t start = 0;          // in the interleaving, of a program's first packet
    uint32_t unsent_bytes = 0;  // of the message being sent; 0 before its first packet
    std::array<uint32_t, kMessageSlots> missing_bytes{};  // not yet arrived

    static constexpr auto Fields() {
      constexpr std::string_view kFixed = "it is set when the flow is opened";
      constexpr std::string_view kNumbers = "numbers of messages name slots, and nothing else";
      constexpr std::string_view kNothing = "no message is under way";
      const auto any = [](const Flow&) { return true; };
      return FieldTable(
          "flow", field::NoState("port", &Flow::port, kFixed),
          field::NoState("next_active", &Flow::next_active, kNothing),
          field::NoState("target", &Flow::target, kFixed),
          field::NoState("user", &Flow::user, kFixed),
          field::NoState("interleave", &Flow::interleave, kFixed),
          field::NoState("position", &Flow::position, "a program begins with `start`"),
          field::NoState("posted", &Flow::posted, kNumbers),
          field::Follows("sent", &Flow::sent, &Flow::posted),
          field::NoState("delivered", &Flow::delivered, kNumbers),
          field::Bits<Flow>("active", [](const Flow& flow) { return !flow.active; }),
          field::Bits<Flow>("has_sizes", any), field::Bits<Flow>("sink", any),
          field::NoState("path_links", &Flow::path_links, kFixed),
          field::NoState("kind", &Flow::kind, kFixed), field::NoState("way", &Flow::way, kFixed),
          field::NoState("start", &Flow::start, kFixed),
          field::NoState("unsent_bytes", &Flow::unsent_bytes, kNothing),
          field::NoState("missing_bytes", &Flow::missing_bytes, kNothing));
    }
  };
  static_assert(sizeof(Flow) == 64);
  struct Port {
    int64_t free_ps = 0;
    uint64_t rate_bps = 0;
    int64_t paced_ps = 0;  // time of a burst of paced_bytes
    uint32_t paced_bytes = 0;
    uint32_t first_active = kNone;
    uint32_t last_active = kNone;
    bool event_pending = false;

    static constexpr auto Fields() {
      constexpr std::string_view kRate = "it is of the fabric";
      constexpr std::string_view kIdle = "no flow has a turn";
      return FieldTable("GPU port", field::Instant("free_ps", &Port::free_ps),
                        field::NoState("rate_bps", &Port::rate_bps, kRate),
                        field::NoState("paced_ps", &Port::paced_ps, kRate),
                        field::NoState("paced_bytes", &Port::paced_bytes, kRate),
                        field::NoState("first_active", &Port::first_active, kIdle),
                        field::NoState("last_active", &Port::last_active, kIdle),
                        field::Quiescent("event_pending", &Port::event_pending));
    }
  };

  // Holds the sink of a group's messages at one receiver, and the bytes that it has not yet
  // received.
  struct Receiver {
    uint32_t user = 0;
    uint8_t sink = 0;  // in sinks_
    uint8_t delivered = 0;
    std::array<uint32_t, kMessageSlots> missing_bytes{};

    static constexpr auto Fields() {
      constexpr std::string_view kFixed = "it is set when the group is opened";
      return FieldTable(
          "receiver of a group", field::NoState("user", &Receiver::user, kFixed),
          field::NoState("sink", &Receiver::sink, kFixed),
          field::NoState("delivered", &Receiver::delivered, "numbers of messages name slots"),
          field::NoState("missing_bytes", &Receiver::missing_bytes, "no message is under way"));
    }
  };
  struct Group {
    PacketKind kind = PacketKind::kNvlinkMulticast;
    uint8_t posted = 0;
    FlowId first_flow;          // the head's; of a reduction, the first member's
    uint32_t request_path = 0;  // of a reduction
    std::array<uint32_t, kMessageSlots> message_bytes{};
    std::vector<Receiver> receivers;    // the members; of a reduction, the head
    std::vector<uint32_t> pieces_sent;  // of a reduction, by member
    FlowId copies = FlowId::kNone;  // the group to which the current sum is stored as it arrives
    uint32_t streamed_bytes = 0;    // of a message not yet posted: bytes that are sent or wait
    uint8_t sent = 0;               // messages whose last packet is sent
    uint32_t unsent_bytes = 0;      // of the message being sent; 0 before its first packet
    std::vector<uint32_t> waiting_parts;  // of messages, to be sent one after the other

    static constexpr auto Fields() {
      constexpr std::string_view kFixed = "it is set when the group is opened";
      constexpr std::string_view kNumbers = "numbers of messages name slots, and nothing else";
      constexpr std::string_view kNothing = "no message is under way";
      return FieldTable(
          "group", field::NoState("kind", &Group::kind, kFixed),
          field::NoState("posted", &Group::posted, kNumbers),
          field::NoState("first_flow", &Group::first_flow, kFixed),
          field::NoState("request_path", &Group::request_path, kFixed),
          field::NoState("message_bytes", &Group::message_bytes, kNothing),
          field::NoState("receivers", &Group::receivers, "see Receiver"),
          field::NoState("pieces_sent", &Group::pieces_sent, "what follows counts on from there"),
          field::NoState("copies", &Group::copies, "it is reset with the sum's last part"),
          field::NoState("streamed_bytes", &Group::streamed_bytes, kNothing),
          field::NoState("sent", &Group::sent, kNumbers),
          field::NoState("unsent_bytes", &Group::unsent_bytes, kNothing),
          field::NoState("waiting_parts", &Group::waiting_parts, "its flow is not active"));
    }
  };
  // Describes a packet of a sum that has arrived.
  struct SumPart {
    uint32_t slot = 0;  // of the message
    uint32_t bytes = 0;
  };
  // Describes an NVSwitch that joins a group, and its links from and to the members.
  struct GroupPlane {
    std::vector<LinkId> up_links;
    std::vector<LinkId> down_links;
    uint32_t lanes = 0;
  };

  // Holds the pipe of a flow whose messages are flows of carriers_ (stores_as_flows.cc).
  struct Carrier {
    PipeId pipe = PipeId::kNone;
    uint64_t rate_alone_bps = 0;
    int64_t full_packet_ps = 0;  // latency of a message with a full packet
    uint64_t rate_changes = 0;   // of links, when rate and latency were computed

    static constexpr auto Fields() {
      constexpr std::string_view kDerived = "it is computed from the links' rates";
      return FieldTable("carrier", field::NoState("pipe", &Carrier::pipe, "see FlowNetwork"),
                        field::NoState("rate_alone_bps", &Carrier::rate_alone_bps, kDerived),
                        field::NoState("full_packet_ps", &Carrier::full_packet_ps, kDerived),
                        field::NoState("rate_changes", &Carrier::rate_changes, kDerived));
    }
  };
  [[gnu::noinline]] void Carry(FlowId flow, uint32_t slot, uint64_t bytes);
  void OpenCarrier(FlowId flow);
  FlowRoute RouteOf(FlowId flow) const;
  uint64_t WireBytesOf(const Flow& flow, uint64_t bytes) const;
  int64_t LatencyPs(FlowId flow, uint64_t packet_bytes) const;
  void DeliverToGroup(const Flow& flow);

  // These functions implement groups (nvlink_groups.cc).
  std::vector<GroupPlane> PlanesOf(std::span<const GpuIndex> gpus) const;
  FlowId AddGroup(PacketKind kind, GpuIndex head_gpu, std::vector<Receiver> receivers,
                  const std::vector<GroupPlane>& planes);
  LinkId UpLink(GpuIndex gpu, const GroupPlane& plane) const;
  FlowId AddGroupFlow(FlowId group, GpuIndex gpu, uint32_t first_path, uint8_t path_links,
                      const std::vector<GroupPlane>& planes);
  uint32_t AddFanOut(GpuIndex head_gpu, const std::vector<GroupPlane>& planes);
  uint32_t TakeSlot(Group& group, uint64_t bytes);
  void StorePart(FlowId group, uint32_t bytes);
  [[gnu::noinline]] void EnqueueWaiting(FlowId flow);
  void StoreOfSum(FlowId group, const SumPart& part);
  [[gnu::noinline]] void AddressToGroup(Packet& packet, FlowId flow_id, uint32_t slot);
  [[gnu::noinline]] void OnGroupArrival(PacketId packet);
  SinkRef UserOf(const Packet& packet) const;
  uint8_t NumberOf(MessageSink* sink);

  static void HandlePort(void* self, uint32_t port);
  // Returns the sink whose OnInjected() it called, or null. Sinks must not post before this
  // returns.
  MessageSink* Serve(uint32_t port);
  FlowId AddFlow(const Flow& flow, uint32_t first_path);
  FlowId AddPcieFlow(const SinkRef& sink, uint32_t port, const std::vector<LinkId>& links);
  void AddPorts(Tier tier);
  void AnswerRead(PacketId request);
  // Queues the next message of the flow for its turn at its port.
  void Enqueue(FlowId flow, uint32_t bytes);
  void FindPlanes();
  // Returns whether the paths are those over all NVSwitches of both GPUs, in order.
  bool AreAllPlanes(GpuIndex source_gpu, GpuIndex destination_gpu,
                    const std::vector<FabricGraph::NvlinkPath>& paths) const;
  uint16_t InterleaveOf(const std::vector<uint32_t>& weights);
  [[gnu::noinline]] void SetSize(FlowId flow, const MessageSize& size);
  [[gnu::noinline]] uint16_t FlagBytes(const Packet& packet, uint32_t unsent_bytes) const;
  // Returns the packet's wire bytes.
  [[gnu::always_inline]] uint32_t SendPacket(Flow& flow, FlowId flow_id);
  void Append(Port& port, FlowId flow_id);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  std::vector<MessageSink*> sinks_;  // users of flows; a flow has room only for a number
  std::vector<Flow> flows_;
  const char* flows_base_ = nullptr;   // of flows_, for the engine's prefetches
  std::vector<uint32_t> first_paths_;  // by flow: over plane 0
  // The sizes of messages by slot, by flow. They exist for flows that have had a message with
  // flags.
  std::vector<std::array<MessageSize, kMessageSlots>> sizes_;
  std::vector<std::vector<FlowId>> flows_of_gpu_;
  // The links of each GPU to and from its NVSwitches, in the order of the switches' numbers. Paths
  // between two GPUs with the same NVSwitches are composed of these instead of being stored, which
  // saves memory.
  std::vector<LinkId> up_links_;
  std::vector<LinkId> down_links_;
  uint32_t planes_max_ = 0;
  std::vector<Group> groups_;
  std::vector<Port> ports_;
  std::vector<uint32_t> due_ports_;  // idle until the messages posted since the last ServeDue()
  std::vector<Interleave> interleaves_;
  std::map<std::vector<uint32_t>, uint16_t> interleave_of_weights_;
  uint32_t packet_payload_bytes_;
  uint32_t full_packet_wire_bytes_;
  FlowNetwork* carriers_ = nullptr;           // null: messages are packets
  std::vector<Carrier> carrier_of_flow_;      // by flow, opened when first used
  std::vector<MessageSink*> notified_sinks_;  // sinks with OnInjected() in the current event
};

}  // namespace railyard
