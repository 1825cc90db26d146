// SPDX-License-Identifier: GPL-2.0-only
// Models switches that combine packets, as with NVLink SHARP and InfiniBand's SHARP. They send a
// packet to every GPU of a group or every branch of a tree, and combine one packet of each into
// one.
//
// This object decides which packets leave a switch in response to an arrival, and makes them. The
// network puts them on their links and frees the packets that were combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/fabric/fabric_tables.h"
#include "simulator/fabric/in_network/switch_group.h"
#include "simulator/fabric/path_table.h"
#include "simulator/fabric/telemetry_table.h"
#include "simulator/state/field_table.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// A switch of an aggregation tree (InfiniBand's SHARP); a packet's `flow` names the node it is on
// its way to.
//  - kAggregateOperand: of all with one `sequence`, one over each of `down`, only the last goes on:
//    up, or, at the root, as the result down.
//  - kAggregateResult: each of `down` gets a copy.
// Operands may be empty but for that of the member that `acknowledged` names: what goes on from the
// first node above it has its payload (`echo`). With kForOne only that member gets it.
struct AggregationNode {
  struct Next {
    LinkId link{0};     // to another node, or to a NIC
    uint32_t flow = 0;  // what packets over it name: its node, or what is the NIC's own matter
    std::vector<uint32_t> members{};  // of `down`: whose NICs are there, ascending
  };
  std::vector<Next> down;
  std::optional<Next> up{};  // none: the root
};

// Counts the packets that a switch made or took of those that came by one link.
struct InSwitchCounters {
  uint64_t replicated_bytes = 0;
  uint64_t reduced_bytes = 0;
  uint64_t requests = 0;        // that asked for operands
  uint64_t request_copies = 0;  // that went on
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

  // GPUs for which NVSwitches multicast and combine; `up_links` lead from all of them, and from
  // whoever sends to them, to those NVSwitches. Groups are numbered from 0; a packet's `flow` names
  // its group.
  //  - kNvlinkMulticast and kNvlinkReadRequest: the first link of the path is followed, in the
  //    table of paths, by the links to the group's GPUs; each gets a copy, whose `tag` is which it
  //    is for.
  //  - kNvlinkOperand: of all with one `sequence` only the last goes on, as the result.
  uint32_t AddSwitchGroup(uint16_t gpu_count, const std::vector<LinkId>& up_links);
  // Nodes are numbered from 0. Precondition: something is below the node.
  uint32_t AddNode(AggregationNode node);
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  bool empty() const { return groups_.empty() && nodes_.empty(); }

  struct Outcome {
    // Packets to put on their `next_link`, in this order; valid until the next Arrive().
    std::span<const PacketId> sent_on;
    // An operand whose data is now in another packet; it must be freed before anything is sent.
    PacketId taken = PacketId::kNone;
  };
  // Must be called when a packet has arrived at a switch that combines. May move all packets.
  Outcome Arrive(PacketId index);

  // --- Counters, by the link that packets came by; none without groups or nodes.
  size_t counted_links() const { return counters_.size(); }
  InSwitchCounters CountersOf(LinkId link) const {
    return counters_.empty() ? InSwitchCounters{} : counters_[link];
  }
  void Visit(StateArchive& archive) { VisitFields(counters_, archive); }
  // Visits as many places before the first group or node is added as afterwards.
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
