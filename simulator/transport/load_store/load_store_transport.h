// SPDX-License-Identifier: GPL-2.0-only
// Messages inside a server. Between GPUs of one NVLink island the sender's stores cross the
// NVSwitches' planes packet by packet, in the ratio of the pair's links to each plane, and need no
// acknowledgement. Every program's messages go round the planes from where the connection's first
// one did; a GPU's connections start at different planes (ADR 0092). Between other GPUs stores take
// the way over PCIe (posted writes), and so do those into a host's memory, from which GPUs load: a
// request goes up for every packet, which comes back (non-posted reads).
//
// A GPU serves its active connections in turn, in bursts, at the raw rate of its links to the
// planes; those over PCIe at that of its PCIe link, and loads by themselves, for they come the
// other way. Link-level replay is part of the links' efficiency, over PCIe of their rate; a packet
// lost to a dead link is an error the GPU reports and no one repairs (NVIDIA Xid 74 and 79), so it
// breaks the connection.
//
// Groups (nvlink_groups.cc): NVSwitches send a GPU's stores to every member, or combine a packet of
// each member into the one that answers a GPU's load (NVLink SHARP). Such a load is a request to
// every member, whose operands then share its port with its other connections. Left out: that every
// load is a request of its own (here a message has one), and that an NVSwitch can hold only so many
// operands (here those that came first wait without limit).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/contract/transport.h"

namespace railyard {

class LoadStoreTransport final : public PacketSink, public StateOwner {
 public:
  // Messages one connection may have under way; NCCL's slots (NCCL_STEPS).
  static constexpr uint32_t kMessageSlots = 8;

  // Registers the events of its ports with the engine; one at a time. Ports are numbered by GPU
  // number, where there is PCIe between GPUs once for NVLink, stores and loads each.
  LoadStoreTransport(const FabricGraph& graph, FabricNetwork& network);

  // Stores between two GPUs (by number) that NVLink or else PCIe joins. Returns a flow number,
  // dense from 0.
  FlowId Open(const SinkRef& sink, uint32_t source_gpu, uint32_t destination_gpu);
  // Stores of a GPU into the memory of the host bridge that `owner_gpu` is nearest to; loads of a
  // GPU from that of its own.
  FlowId OpenHostStore(const SinkRef& sink, uint32_t source_gpu, uint32_t owner_gpu);
  FlowId OpenHostLoad(const SinkRef& sink, uint32_t gpu);
  // Preconditions: fewer than kMessageSlots messages of the flow are undelivered; 0 < bytes < 4
  // GiB. An idle port sends at the next ServeDue(), which must come within the same event.
  void Post(FlowId flow, const MessageSize& size);
  void ServeDue();
  // A program begins to use the flow, or group, of which all has been sent.
  void StartOver(FlowId flow) { flows_[flow].position = flows_[flow].start; }
  void StartGroupOver(FlowId group);
  // Fetches the links that the flow's next packets take into the cache, ahead of Post().
  void FetchLinks(FlowId flow) const;

  // Whether at least two GPUs (by number) share an NVSwitch.
  bool CanGroup(std::span<const uint32_t> gpus) const;
  struct GroupMember {
    uint32_t gpu = 0;
    SinkRef sink;  // that hears of the message in this GPU's memory
  };
  // Stores of `head_gpu` into the memories of all members, of which it may be one; preconditions:
  // CanGroup() of all. Returns a group number, dense from 0 over both kinds.
  FlowId OpenMulticast(uint32_t head_gpu, const std::vector<GroupMember>& members);
  // Loads of `head_gpu` that sum over the members. `sink` hears of each sum that is there.
  FlowId OpenReduce(const SinkRef& sink, uint32_t head_gpu, const std::vector<uint32_t>& members);
  // As Post(); a slot is free when every member, or the head, has the message. `bytes` is what each
  // member, or the head, receives.
  void PostMulticast(FlowId group, uint64_t bytes);
  // The operands are in the members' memories. ServeDue() need not follow.
  void PostReduce(FlowId group, uint64_t bytes);

  void OnPacketAtNic(uint32_t packet) override;
  void OnPacketInMemory(uint32_t packet) override;
  void OnPacketDropped(uint32_t packet, DropReason reason, LinkId link) override;

  std::string state_name() const override { return "NVLink and PCIe flows"; }
  void Visit(StateArchive& archive) override;
  // The same of what these GPUs send.
  void VisitGpus(std::span<const uint32_t> gpus, StateArchive& archive);

  TimingWheel::PrefetchTable FlowTable() const { return {&flows_base_, sizeof(Flow)}; }
  // Those that send from a GPU (by number), in the order in which they were opened.
  std::span<const FlowId> FlowsOf(uint32_t gpu) const { return flows_of_gpu_[gpu]; }
  // Who hears of the flow's messages; of a group, the first one.
  SinkRef FirstUserOf(FlowId flow) const;
  // Path of the flow over one plane, for bounds and ledgers, and the planes' weights.
  struct PlanePath {
    PathRef path;
    uint32_t weight;
  };
  std::vector<PlanePath> PathsOf(FlowId flow) const;
  // The links that the payload crosses by one of the planes; and over all planes.
  std::vector<LinkId> LinksOf(FlowId flow) const;
  std::vector<LinkShare> LinkSharesOf(FlowId flow) const;
  uint64_t WireBytes(uint64_t payload_bytes) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Packets one connection sends before the next one's turn.
  static constexpr uint32_t kBurstPackets = 4;
  // A ring's messages at a thousand GPUs have two packets.
  static constexpr uint32_t kFetchedLinks = 2;

  // Planes joining a pair, shared by all pairs with the same weights: the order in which
  // consecutive packets take them.
  struct Interleave {
    std::vector<uint8_t> plane_of_position;
    std::vector<uint32_t> weights;
  };
  enum class Way : uint8_t {
    kPaths,      // over NVLinks
    kAllPlanes,  // over all NVSwitches of both its GPUs, which are the same
    kPcie,
  };
  // One cache line: every packet touches its flow.
  struct alignas(64) Flow {
    uint32_t port = 0;
    uint32_t next_active = kNone;
    // The destination's first in down_links_; otherwise the path over plane 0, that over plane p
    // being path_links p behind it.
    uint32_t target = 0;
    uint32_t user = 0;  // its number of this flow, or the group's
    uint16_t interleave = 0;
    uint16_t position = 0;  // in the interleaving, of the next packet
    uint8_t posted = 0;     // message counters modulo 256
    uint8_t sent = 0;
    uint8_t delivered = 0;
    bool active : 1 = false;
    bool has_sizes : 1 = false;  // its messages are in sizes_
    uint8_t sink : 6 = 0;        // in sinks_
    uint8_t path_links = 2;  // 1: a cable from GPU to GPU; a group's: one up and all down. A load's
                             // are those of the request; those of its answer precede them
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
    int64_t paced_ps = 0;  // what a burst of paced_bytes takes
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
                        field::AtRest("event_pending", &Port::event_pending));
    }
  };

  // Who is told of a group's messages, and what has not yet come of them.
  struct Receiver {
    uint32_t user = 0;
    uint8_t sink = 0;  // in sinks_
    uint8_t delivered = 0;
    std::array<uint32_t, kMessageSlots> missing_bytes{};
  };
  struct Group {
    PacketKind kind = PacketKind::kNvlinkMulticast;
    uint8_t posted = 0;
    FlowId first_flow;          // the head's; of a reduction, those of the members
    uint32_t request_path = 0;  // of a reduction
    std::array<uint32_t, kMessageSlots> message_bytes{};
    std::vector<Receiver> receivers;    // the members; of a reduction, the head
    std::vector<uint32_t> pieces_sent;  // of a reduction, by member
  };
  // An NVSwitch that joins a group, and its links from and to the members.
  struct GroupPlane {
    std::vector<LinkId> up_links;
    std::vector<LinkId> down_links;
    uint32_t lanes = 0;
  };

  // Groups (nvlink_groups.cc).
  std::vector<GroupPlane> PlanesOf(std::span<const uint32_t> gpus) const;
  FlowId AddGroup(PacketKind kind, uint32_t head_gpu, std::vector<Receiver> receivers,
                  const std::vector<GroupPlane>& planes);
  LinkId UpLink(uint32_t gpu, const GroupPlane& plane) const;
  FlowId AddGroupFlow(FlowId group, uint32_t gpu, uint32_t first_path, uint8_t path_links,
                      const std::vector<GroupPlane>& planes);
  uint32_t AddFanOut(uint32_t head_gpu, const std::vector<GroupPlane>& planes);
  uint32_t TakeSlot(Group& group, uint64_t bytes);
  [[gnu::noinline]] void AddressToGroup(Packet& packet, FlowId flow_id, uint32_t slot);
  [[gnu::noinline]] void OnGroupArrival(uint32_t packet);
  SinkRef UserOf(const Packet& packet) const;
  uint8_t NumberOf(MessageSink* sink);

  static void HandlePort(void* self, uint32_t port);
  // Returns whom it told that messages were injected; null: nobody. No sink may post before.
  MessageSink* Serve(uint32_t port);
  FlowId AddFlow(const Flow& flow, uint32_t first_path);
  FlowId AddPcieFlow(const SinkRef& sink, uint32_t port, const std::vector<LinkId>& links);
  void AddPorts(Tier tier);
  void AnswerRead(uint32_t request);
  // The next message of the flow, at its port in turn.
  void Enqueue(FlowId flow, uint32_t bytes);
  void FindPlanes();
  // Whether the paths are those over all NVSwitches of both GPUs, in their order.
  bool AreAllPlanes(uint32_t source_gpu, uint32_t destination_gpu,
                    const std::vector<FabricGraph::NvlinkPath>& paths) const;
  uint16_t InterleaveOf(const std::vector<uint32_t>& weights);
  [[gnu::noinline]] void SetSize(FlowId flow, const MessageSize& size);
  [[gnu::noinline]] uint16_t FlagBytes(FlowId flow, uint32_t slot, uint32_t unsent_bytes,
                                       uint32_t payload_bytes) const;
  // Returns the packet's wire bytes.
  uint32_t SendPacket(Flow& flow, FlowId flow_id);
  void Append(Port& port, FlowId flow_id);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  std::vector<MessageSink*> sinks_;  // who uses flows; a flow has no room for more than a number
  std::vector<Flow> flows_;
  const char* flows_base_ = nullptr;   // where they are, for the engine's prefetches
  std::vector<uint32_t> first_paths_;  // by flow: over plane 0
  // By flow, of those that have had a message with flags: the sizes of messages by slot.
  std::vector<std::array<MessageSize, kMessageSlots>> sizes_;
  std::vector<std::vector<FlowId>> flows_of_gpu_;
  // By GPU, to and from its NVSwitches in the order of their numbers: what paths are made of, where
  // two GPUs have the same NVSwitches. A few bytes of them are used where paths would take many.
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
};

}  // namespace railyard
