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
// Groups of GPUs (nvlink_groups.h) use NVLink SHARP. In flow mode messages are flows instead of
// packets (stores_as_flows.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/flow/flow_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/flow_owner.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/load_store/nvlink_groups.h"
#include "simulator/transport/load_store/nvlink_planes.h"
#include "simulator/transport/load_store/store_flow.h"
#include "simulator/transport/load_store/stores_as_flows.h"
#include "simulator/units/divide_up.h"

namespace railyard {

class LoadStoreTransport final : public PacketSink, public FlowOwner, public StateOwner {
 public:
  // Registers the events of its ports with the engine, which allows one instance at a time. Ports
  // are numbered by GPU; if there is PCIe between GPUs, NVLink, stores and loads have separate
  // ranges.
  LoadStoreTransport(const FabricGraph& graph, FabricNetwork& network);

  // Makes messages flows of this network instead of packets. Precondition: no flow was opened.
  void CarryByFlows(FlowNetwork& flows);

  // Opens a flow of stores between two GPUs, given by number, over NVLink, or over PCIe if no
  // NVLink joins them. Returns the flow's number, dense from 0.
  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu);
  // Opens a flow of stores of a GPU into the memory at the host bridge nearest to `owner_gpu`, or
  // of loads of a GPU from the memory at its own host bridge.
  FlowId OpenHostStore(const SinkRef& sink, GpuIndex source_gpu, GpuIndex owner_gpu);
  FlowId OpenHostLoad(const SinkRef& sink, GpuIndex gpu);
  // Posts a message. An idle port sends at the next ServeDue(), which must be called within the
  // same event. Preconditions: fewer than kStoreSlots messages of the flow are undelivered, and 0
  // < bytes < 4 GiB.
  void Post(FlowId flow, const MessageSize& size);
  // Sends at all idle ports for which messages were posted since the last call.
  void ServeDue();
  // All messages of the flow must have been sent. Its packets start on the same plane as at first.
  void StartOver(FlowId flow) override { flows_[flow].position = flows_[flow].start; }
  // Prefetches the links that the flow's next packets use, ahead of Post().
  void FetchLinks(FlowId flow) const;
  NvlinkGroups& groups() { return groups_; }
  const NvlinkGroups& groups() const { return groups_; }

  void OnPacketAtNic(PacketId packet) override;
  void OnPacketInMemory(PacketId packet) override;
  void OnPacketDropped(PacketId packet, DropReason reason, LinkId link) override;

  std::string state_name() const override { return "NVLink and PCIe flows"; }
  void Visit(StateArchive& archive) override;
  // Visits only the flows on which these GPUs send.
  void VisitGpus(std::span<const GpuIndex> gpus, StateArchive& archive);

  TimingWheel::PrefetchTable FlowTable() const { return {&flows_base_, sizeof(StoreFlow)}; }
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
  std::vector<LinkId> LinksOf(FlowId flow) const override;  // over one of the planes
  std::vector<LinkShare> LinkSharesOf(FlowId flow) const override;
  // Returns the bytes of a packet on an NVLink.
  uint64_t WireBytes(uint64_t payload_bytes) const;

  // --- For NvlinkGroups and StoresAsFlows --------------------------------------------------------
  // Describes a flow on which a GPU sends a group's packets.
  struct OfGroup {
    PacketKind kind = PacketKind::kNvlinkMulticast;
    FlowId group;
    GpuIndex gpu{};
    PathRef first_path;  // over the first plane; those over the others follow
  };
  FlowId OpenOfGroup(const OfGroup& of, const std::vector<uint32_t>& weights_of_planes);
  // Queues the next message of the flow for its turn at its port.
  void Enqueue(FlowId flow, uint32_t bytes);
  StoreFlow& flow(FlowId id) { return flows_[id]; }
  const StoreFlow& flow(FlowId id) const { return flows_[id]; }
  bool are_flows() const { return as_flows_ != nullptr; }  // instead of packets
  uint32_t packet_payload_bytes() const { return packet_payload_bytes_; }
  // Returns the payload of a message under way, without its flags.
  uint64_t PayloadBytes(FlowId flow, uint32_t slot) const;
  // Returns the time that the request for a packet of a load over PCIe takes.
  int64_t RequestLatencyPs(const StoreFlow& flow, uint32_t packet_bytes) const;

 private:
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
  static constexpr uint32_t ReadRequestWireBytes(uint32_t payload_bytes) {
    return static_cast<uint32_t>(DivideUp(payload_bytes, kReadRequestPayloadBytes)) *
           kReadRequestWireBytes;
  }

  struct Port {
    int64_t free_ps = 0;
    uint64_t rate_bps = 0;
    int64_t paced_ps = 0;  // time of a burst of paced_bytes
    uint32_t paced_bytes = 0;
    uint32_t first_active = StoreFlow::kNone;
    uint32_t last_active = StoreFlow::kNone;
    bool event_pending = false;

    static constexpr auto Fields() {
      constexpr std::string_view kPaced = "the last burst's time, computed anew for other bytes";
      return FieldTable("GPU port", field::Instant("free_ps", &Port::free_ps),
                        field::Fixed("rate_bps", &Port::rate_bps),
                        field::NoState("paced_ps", &Port::paced_ps, kPaced),
                        field::NoState("paced_bytes", &Port::paced_bytes, kPaced),
                        field::Idle("first_active", &Port::first_active, StoreFlow::kNone),
                        field::NoState("last_active", &Port::last_active,
                                       "the next flow that joins the empty list sets it"),
                        field::Quiescent("event_pending", &Port::event_pending));
    }
  };

  uint8_t NumberOf(MessageSink* sink);
  static void HandlePort(void* self, uint32_t port);
  // Returns the sink whose OnInjected() it called, or null. Sinks must not post before this
  // returns.
  MessageSink* Serve(uint32_t port);
  FlowId AddFlow(const StoreFlow& flow, uint32_t first_path);
  FlowId AddPcieFlow(const SinkRef& sink, uint32_t port, const std::vector<LinkId>& links);
  void AddPorts(Tier tier);
  void AnswerRead(PacketId request);
  [[gnu::noinline]] void SetSize(FlowId flow, const MessageSize& size);
  [[gnu::noinline]] uint16_t FlagBytes(const Packet& packet, uint32_t unsent_bytes) const;
  // Returns the packet's wire bytes.
  [[gnu::always_inline]] uint32_t SendPacket(StoreFlow& flow, FlowId flow_id);
  void Append(Port& port, FlowId flow_id);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  std::vector<MessageSink*> sinks_;  // users of flows; a flow has room only for a number
  std::vector<StoreFlow> flows_;
  const char* flows_base_ = nullptr;   // of flows_, for the engine's prefetches
  std::vector<uint32_t> first_paths_;  // by flow: over plane 0
  // The sizes of messages by slot, by flow. They exist for flows that have had a message with
  // flags.
  std::vector<std::array<MessageSize, kStoreSlots>> sizes_;
  std::vector<std::vector<FlowId>> flows_of_gpu_;
  NvlinkPlanes planes_;
  NvlinkGroups groups_;
  std::vector<Port> ports_;
  std::vector<uint32_t> due_ports_;  // idle until the messages posted since the last ServeDue()
  uint32_t packet_payload_bytes_;
  uint32_t full_packet_wire_bytes_;
  std::unique_ptr<StoresAsFlows> as_flows_;  // null: messages are packets
};

}  // namespace railyard
