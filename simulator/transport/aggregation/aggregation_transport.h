// SPDX-License-Identifier: GPL-2.0-only
// Implements reduction in the network's switches: InfiniBand's SHARP with streaming aggregation
// (Graham et al.: "Scalable Hierarchical Aggregation and Reduction Protocol (SHARP)
// Streaming-Aggregation Hardware Design and Evaluation", ISC 2020). Each NIC of a tree sends its
// operand towards the root. A switch of the tree combines one packet from each branch into one, and
// the root's result goes down to every NIC. So an operation of S bytes puts S on every NIC's wire
// in each direction.
//
// A tree is the union of the fabric's routes from all NICs to the first one. A NIC has at most its
// window outstanding, counted in packets whose result has not arrived, and shares its wires with
// the queue pairs.
//
// Not modelled: retransmission on the hops of a tree (a lost packet breaks the tree permanently, as
// does a failed cable), and limits on the number of trees and on the operands in a switch's memory.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/aggregation.h"
#include "simulator/transport/contract/flow_owner.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/routing/routing.h"

namespace railyard {

class AggregationTransport final : public PacketSink, public FlowOwner, public StateOwner {
 public:
  // Registers the events of its ports with the engine, which allows one instance at a time.
  AggregationTransport(const FabricGraph& graph, FabricNetwork& network, const EcmpRouting& routing,
                       const NicSettings& settings);

  // Opens a tree over the NICs of these GPUs. `entropy` is the input of the fabric's hashes.
  // Returns the flow of the first GPU; those of the others follow in order. Preconditions: there
  // are at least two GPUs, and routes over switches and without detours lead from each NIC to the
  // first.
  FlowId OpenTree(std::span<const GpuIndex> gpus, uint64_t entropy);
  // Sets the sink that receives the callbacks for the member's results.
  void Join(FlowId member, const SinkRef& sink);
  // Appends an operation to a member's queue. All members of a tree must post the same operations
  // in the same order. OnDelivered() is called when the result has arrived. Preconditions:
  // `operation.bytes` is below 4 GiB and a multiple of the number of blocks, and each block has a
  // member.
  void Post(FlowId member, const Aggregation& operation);

  void OnPacketAtNic(PacketId packet) override;
  void OnPacketInMemory(PacketId packet) override;
  void OnLinkReleased(LinkId link) override;
  void OnPacketDropped(PacketId packet, DropReason reason, LinkId link) override;
  // Stops a member from sending.
  void Close(FlowId member) override { members_[member].is_closed = true; }

  std::string state_name() const override { return "aggregation trees"; }
  void Visit(StateArchive& archive) override;

  // Returns the member's links up to the root, and the links from its first switch down to memory.
  std::vector<LinkId> LinksOf(FlowId member) const override { return members_[member].links; }
  // Returns the same links with their shares: all of the payload crosses each.
  std::vector<LinkShare> LinkSharesOf(FlowId member) const override;

 private:
  using PortId = Identifier<struct AggregationPortTag>;

  struct Message {
    Aggregation operation;
    uint32_t packets_of_block = 0;
    uint32_t sent = 0;      // packets
    uint32_t received = 0;  // of its result
    uint32_t packets() const { return packets_of_block * operation.blocks; }
  };
  struct Member {
    uint32_t tree = 0;
    SinkRef user;
    PortId port;
    uint32_t node = 0;  // of the first switch
    PathRef up;         // from memory to that switch
    LinkId to_memory{0};
    std::vector<LinkId> links;
    std::deque<Message> messages;  // whose result has not arrived completely
    uint32_t sending = 0;          // index of the first that is not sent completely
    uint32_t next_piece = 0;       // to be sent
    uint32_t results = 0;          // packets received
    bool is_active = false;        // in its port's `turns`
    bool is_closed = false;

    static constexpr auto Fields() {
      const auto has_all_results = [](const Member& member) {
        return member.next_piece == member.results;
      };
      return FieldTable(
          "member", field::Fixed("tree", &Member::tree), field::Fixed("user", &Member::user),
          field::Fixed("port", &Member::port), field::Fixed("node", &Member::node),
          field::Fixed("up", &Member::up), field::Fixed("to_memory", &Member::to_memory),
          field::Fixed("links", &Member::links), field::Quiescent("messages", &Member::messages),
          field::Idle("sending", &Member::sending),
          field::IdleIf("next_piece", &Member::next_piece, has_all_results),
          field::NoState("results", &Member::results, "what follows counts on from there"),
          field::Quiescent("is_active", &Member::is_active),
          field::NoState("is_closed", &Member::is_closed,
                         "AggregationTransport::Visit omits a member that is closed"));
    }
  };
  struct Tree {
    uint32_t first_member = 0;
    uint32_t member_count = 0;
  };
  // Describes a wire and the members that wait for their turn on it, in order.
  struct Port {
    LinkId wire{0};
    int64_t backlog_max_ps = 0;
    int64_t free_ps = 0;
    int64_t event_ps = kNeverPs;
    std::deque<FlowId> turns{};

    static constexpr auto Fields() {
      return FieldTable("port", field::Fixed("wire", &Port::wire),
                        field::Fixed("backlog_max_ps", &Port::backlog_max_ps),
                        field::Instant("free_ps", &Port::free_ps),
                        field::Quiescent("event_ps", &Port::event_ps, kNeverPs),
                        field::Quiescent("turns", &Port::turns));
    }
  };

  // Returns the links from a GPU's memory to the switch of the first GPU's NIC.
  std::vector<LinkId> WayUp(GpuIndex gpu, std::span<const GpuIndex> gpus, uint64_t entropy) const;
  void AddNodes(uint32_t first_member, std::span<const std::vector<LinkId>> ways);
  PortId PortOf(LinkId wire);
  bool MaySend(const Member& member) const;
  void Activate(FlowId member);
  int64_t SendPacket(FlowId member);
  static void HandlePort(void* self, uint32_t port);
  void Serve(PortId port);
  void ScheduleServe(PortId port, int64_t time_ps);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  const EcmpRouting& routing_;
  uint32_t mtu_bytes_;
  uint32_t header_bytes_;
  uint32_t window_packets_;
  std::vector<Tree> trees_;
  std::vector<Member> members_;
  std::vector<Port> ports_;
  std::vector<PortId> port_of_link_;  // by wire
};

}  // namespace railyard
