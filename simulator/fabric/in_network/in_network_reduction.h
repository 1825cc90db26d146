// SPDX-License-Identifier: GPL-2.0-only
// Models switches that copy and combine packets, as with NVLink SHARP and InfiniBand's SHARP. They
// send a packet to every GPU of a group or every branch of a tree, and combine one packet from each
// into one.
//
// This object decides which packets leave a switch in response to an arrival, and makes them. The
// network puts them on their links and frees the packets that were combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/fabric/in_network/switch_group.h"
#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/path_table.h"
#include "simulator/fabric/tables/telemetry_table.h"
#include "simulator/state/field_table.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// Describes a switch of an aggregation tree (InfiniBand's SHARP). A packet's `flow` names the next
// node on its way.
//  - kAggregateOperand: the node receives one packet with each `sequence` over each link of `down`
//    and forwards only the last of them: up, or, at the root, down as the result.
//  - kAggregateResult: each link of `down` gets a copy.
// Operands may be empty, except that of the member that `acknowledged` names. The packet that a
// node above that member forwards has its payload, of `echo` bytes. With kForOne only that member
// receives the payload of the result.
struct AggregationNode {
  struct Next {
    LinkId link{0};     // to another node, or to a NIC
    uint32_t flow = 0;  // of packets over the link: the next node, or the NIC's member
    std::vector<uint32_t> members{};  // of `down`: members reached by the link, ascending
  };
  std::vector<Next> down;
  std::optional<Next> up{};  // nullopt at the root
};

// Counts the packets that a switch has added to, or taken out of, those that arrived by one link.
struct InSwitchCounters {
  uint64_t replicated_bytes = 0;
  uint64_t reduced_bytes = 0;
  uint64_t requests = 0;        // requests for operands
  uint64_t request_copies = 0;  // their copies, one per GPU
  uint32_t packets = 0;         // copies less operands taken, modulo 2^32

  static constexpr auto Fields() {
    return FieldTable("in-switch counters",
                      field::Count("replicated_bytes", &InSwitchCounters::replicated_bytes),
                      field::Count("reduced_bytes", &InSwitchCounters::reduced_bytes),
                      field::Count("requests", &InSwitchCounters::requests),
                      field::Count("request_copies", &InSwitchCounters::request_copies),
                      field::Count("packets", &InSwitchCounters::packets));
  }
};

class InNetworkReduction {
 public:
  // All must outlive this.
  InNetworkReduction(FabricTables& tables, const PathTable& paths, TelemetryTable& telemetry)
      : tables_(tables), paths_(paths), telemetry_(telemetry) {}

  // Adds a group of GPUs for which NVSwitches multicast and combine. `up_links` are the links to
  // those NVSwitches from all GPUs of the group and from all senders to it. Returns the group's
  // number, dense from 0; a packet's `flow` names its group.
  //  - kNvlinkMulticast and kNvlinkReadRequest: in the table of paths, the links to the group's
  //    GPUs follow the first link of the packet's path. Each GPU gets a copy, whose `tag` is the
  //    GPU's place in the group.
  //  - kNvlinkOperand: only the last packet with each `sequence` is forwarded, as the result.
  uint32_t AddSwitchGroup(uint16_t gpu_count, const std::vector<LinkId>& up_links);
  // Adds a node and returns its number, dense from 0. Precondition: `node.down` is not empty.
  uint32_t AddNode(AggregationNode node);
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  bool empty() const { return groups_.empty() && nodes_.empty(); }

  struct Outcome {
    // Packets to put on their `next_link`, in this order; valid until the next Arrive().
    std::span<const PacketId> sent_on;
    // An operand whose data is now in another packet; it must be freed before anything is sent.
    PacketId taken = PacketId::kNone;
  };
  // Must be called when a packet has arrived at a switch that combines. The call may move all
  // packets.
  Outcome Arrive(PacketId index);

  // --- Counters, by the link by which packets arrived. They exist once a group or node was added.
  size_t counted_links() const { return counters_.size(); }
  InSwitchCounters CountersOf(LinkId link) const {
    return counters_.empty() ? InSwitchCounters{} : counters_[link];
  }
  void Visit(StateArchive& archive) { VisitFields(counters_, archive); }
  // Visits the link's counters, or zeros of the same number if there are no counters yet.
  void Visit(LinkId link, StateArchive& archive) {
    InSwitchCounters none;
    VisitFields(counters_.empty() ? none : counters_[link], link, archive);
  }

 private:
  struct CombiningNode {
    AggregationNode node;
    SwitchGroup operands;
  };

  Outcome SendOn(PacketId index);
  Outcome ReplicateInNvSwitch(PacketId index);
  Outcome TakeAggregateOperand(PacketId index);
  PacketId Refill(PacketId index);
  void SendDown(PacketId index);
  template <typename Links>
  uint16_t LongestOf(uint16_t copies, const Links& link_of) const;
  template <typename Links, typename Address>
  void Replicate(PacketId index, uint16_t copies, uint16_t last, const Links& link_of,
                 const Address& address);
  void CountTaken(const Packet& packet);

  FabricTables& tables_;
  const PathTable& paths_;
  TelemetryTable& telemetry_;
  std::vector<SwitchGroup> groups_;
  std::vector<CombiningNode> nodes_;
  std::vector<InSwitchCounters> counters_;
  std::vector<PacketId> sent_on_;  // Outcome's
};

}  // namespace railyard
