// SPDX-License-Identifier: GPL-2.0-only
// Implements stores to all GPUs of a group and loads that sum over them, as NCCL's NVLS uses them
// (PTX multimem.st and multimem.ld_reduce): NVLink SHARP. NVSwitches send a GPU's stores to every
// member, or combine one packet of each member into the answer to a GPU's load. Such a load is a
// request to every member. A member's operands share its port with its other flows. The sum may be
// stored to a group while it arrives.
//
// Not modelled: separate requests for all loads (here a message has one), and the limited number of
// operands that an NVSwitch can hold (here the first operands wait without limit).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/flow_owner.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/load_store/store_flow.h"

namespace railyard {

class LoadStoreTransport;

class NvlinkGroups {
 public:
  // A group's packets are sent by flows of `flows`. All references must outlive this object.
  NvlinkGroups(const FabricGraph& graph, FabricNetwork& network, LoadStoreTransport& flows)
      : graph_(graph), network_(network), flows_(flows) {}

  struct Member {
    GpuIndex gpu{0};
    SinkRef sink;  // called when the message is in this GPU's memory
  };
  // Opens a group for stores of `head_gpu` into the memories of all members, which may include it.
  // Returns the group's number, dense from 0 over both kinds. Precondition: there are at
  // least two members, and an NVSwitch joins all of them.
  FlowId OpenMulticast(GpuIndex head_gpu, const std::vector<Member>& members);
  // Opens a group for loads of `head_gpu` that sum over the members. `sink` receives a callback for
  // each sum that has arrived. The precondition is the same.
  FlowId OpenReduce(const SinkRef& sink, GpuIndex head_gpu, const std::vector<GpuIndex>& members);
  // Works like LoadStoreTransport::Post(). A slot is free when every member has the message. Each
  // member receives `bytes`.
  void PostMulticast(FlowId group, uint64_t bytes);
  // Requests a sum; the operands must be in the members' memories. A slot is free when the head has
  // the sum, of `bytes`. ServeDue() need not follow.
  void PostReduce(FlowId group, uint64_t bytes);
  // Works like PostReduce(). In addition, the head stores each packet of the sum but the last to
  // the members of `copies` when it arrives. PostMulticast() with the same `bytes` must follow when
  // the head has the sum; it stores the rest. Precondition: no other sum is on its way to `copies`.
  void PostReduceTo(FlowId copies, FlowId group, uint64_t bytes);
  // Must be called when a program begins to use the group, all of whose messages have been sent.
  void StartOver(FlowId group);

  // --- For LoadStoreTransport, whose flows `flow` are of groups ----------------------------------
  size_t size() const { return groups_.size(); }
  // Completes a packet of a flow's message in `slot`, so that the NVSwitches know its group.
  void Address(Packet& packet, FlowId flow, uint32_t slot);
  // Must be called after a turn of a multicast's flow.
  void OnTurn(FlowId flow);
  void OnArrival(PacketId packet);
  SinkRef UserOf(const Packet& packet) const;
  SinkRef FirstUserOf(FlowId group) const { return groups_[group].receivers.front().user; }

  // --- For StoresAsFlows -------------------------------------------------------------------------
  // Returns the number of operands of a sum, or 0 for a multicast.
  size_t OperandCount(FlowId group) const { return groups_[group].pieces_sent.size(); }
  // Returns the time that the request for a sum takes.
  int64_t RequestLatencyPs(FlowId group) const;
  // Delivers the oldest message to all receivers.
  void Deliver(FlowId group);

  // Checks the groups, of which snapshots need nothing.
  void Check(StateArchive& archive);

 private:
  // A header and its address extension have 16 B each (Foley and Danskin: "Ultra-Performance Pascal
  // GPU and NVLink Interconnect", IEEE Micro 37(2), 2017).
  static constexpr uint16_t kReadRequestWireBytes = 32;

  // Holds the sink of a group's messages at one receiver, and the bytes that it has not yet
  // received.
  struct Receiver {
    SinkRef user;
    uint8_t delivered = 0;
    std::array<uint32_t, kStoreSlots> missing_bytes{};

    static constexpr auto Fields() {
      return FieldTable("receiver of a group", field::Fixed("user", &Receiver::user),
                        field::NoState("delivered", &Receiver::delivered,
                                       "it equals Group::posted, and names slots"),
                        field::NoState("missing_bytes", &Receiver::missing_bytes,
                                       "the next message in a slot sets it"));
    }
  };
  struct Group {
    PacketKind kind = PacketKind::kNvlinkMulticast;
    uint8_t posted = 0;
    FlowId first_flow;          // the head's; of a reduction, the first member's
    uint32_t request_path = 0;  // of a reduction
    std::array<uint32_t, kStoreSlots> message_bytes{};
    std::vector<Receiver> receivers;    // the members; of a reduction, the head
    std::vector<uint32_t> pieces_sent;  // of a reduction, by member
    FlowId copies = FlowId::kNone;  // the group to which the current sum is stored as it arrives
    uint32_t streamed_bytes = 0;    // of a message not yet posted: bytes that are sent or wait
    uint8_t sent = 0;               // messages whose last packet is sent
    uint32_t unsent_bytes = 0;      // of the message being sent; 0 before its first packet
    std::vector<uint32_t> waiting_parts;  // of messages, to be sent one after the other

    static constexpr auto Fields() {
      // The receivers' counts differ from it only while messages are under way.
      const auto has_delivered_all = [](const Group& group) {
        return std::ranges::all_of(group.receivers, [&group](const Receiver& receiver) {
          return receiver.delivered == group.posted;
        });
      };
      return FieldTable(
          "group", field::Fixed("kind", &Group::kind),
          field::IdleIf("posted", &Group::posted, has_delivered_all),
          field::Fixed("first_flow", &Group::first_flow),
          field::Fixed("request_path", &Group::request_path),
          field::NoState("message_bytes", &Group::message_bytes,
                         "the next message in a slot sets it"),
          field::NoState("receivers", &Group::receivers, "NvlinkGroups::Check checks them"),
          field::NoState("pieces_sent", &Group::pieces_sent, "what follows counts on from there"),
          field::Idle("copies", &Group::copies, FlowId::kNone),
          field::Idle("streamed_bytes", &Group::streamed_bytes),
          field::NoState("sent", &Group::sent, "it names slots, and nothing else"),
          field::Idle("unsent_bytes", &Group::unsent_bytes),
          field::Idle("waiting_parts", &Group::waiting_parts));
    }
  };
  // Describes a packet of a sum that has arrived.
  struct SumPart {
    uint32_t slot = 0;  // of the message
    uint32_t bytes = 0;
  };
  // Describes an NVSwitch that joins a group, and its links from and to the members.
  struct Plane {
    std::vector<LinkId> up_links;
    std::vector<LinkId> down_links;
    uint32_t lanes = 0;
  };

  std::vector<Plane> PlanesOf(std::span<const GpuIndex> gpus) const;
  FlowId Add(PacketKind kind, GpuIndex head_gpu, std::vector<Receiver> receivers,
             const std::vector<Plane>& planes);
  LinkId UpLink(GpuIndex gpu, const Plane& plane) const;
  FlowId AddFlow(FlowId group, GpuIndex gpu, PathRef first_path, const std::vector<Plane>& planes);
  PathRef AddFanOut(GpuIndex head_gpu, const std::vector<Plane>& planes);
  static uint32_t TakeSlot(Group& group, uint64_t bytes);
  void StorePart(FlowId group, uint32_t bytes);
  void EnqueueWaiting(Group& group);
  void StoreOfSum(FlowId group, const SumPart& part);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  LoadStoreTransport& flows_;
  std::vector<Group> groups_;
};

}  // namespace railyard
