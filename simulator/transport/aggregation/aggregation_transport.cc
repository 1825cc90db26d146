// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/aggregation/aggregation_transport.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/transport/nic/nic_port.h"
#include "simulator/units/divide_up.h"

namespace railyard {

AggregationTransport::AggregationTransport(const FabricGraph& graph, FabricNetwork& network,
                                           const EcmpRouting& routing, const NicSettings& settings)
    : graph_(graph),
      network_(network),
      routing_(routing),
      mtu_bytes_(settings.mtu_bytes),
      header_bytes_(settings.HeaderBytes()),
      window_packets_(
          static_cast<uint32_t>(std::max<uint64_t>(1, settings.window_bytes / settings.mtu_bytes))),
      port_of_link_(graph.link_count(), PortId::kNone) {
  network.engine().Register(event_order::kAggregationPort,
                            {.name = "turns of operands", .state = {.owner = this}},
                            &AggregationTransport::HandlePort, this);
}

void AggregationTransport::HandlePort(void* self, uint32_t port) {
  static_cast<AggregationTransport*>(self)->Serve(PortId{port});
}

// --- Trees ---------------------------------------------------------------------------------------

std::vector<LinkId> AggregationTransport::WayUp(GpuIndex gpu, std::span<const GpuIndex> gpus,
                                                uint64_t entropy) const {
  const bool is_first = gpu == gpus.front();
  Path path = routing_.Resolve(graph_.gpus()[is_first ? gpus[1] : gpu], graph_.gpus()[gpus.front()],
                               entropy);
  SIM_CHECK(path.size() >= 4, "an aggregation tree over NICs that no switch joins");
  if (is_first) return {graph_.ReverseLink(path.back()), graph_.ReverseLink(path.end()[-2])};
  path.resize(path.size() - 2);
  return path;
}

FlowId AggregationTransport::OpenTree(std::span<const GpuIndex> gpus, uint64_t entropy) {
  SIM_CHECK(gpus.size() >= 2, "an aggregation tree of one");
  const auto first_member = static_cast<uint32_t>(members_.size());
  const auto tree = static_cast<uint32_t>(trees_.size());
  trees_.push_back({first_member, static_cast<uint32_t>(gpus.size())});
  std::vector<std::vector<LinkId>> ways;
  for (const GpuIndex gpu : gpus) {
    const std::vector<LinkId>& way = ways.emplace_back(WayUp(gpu, gpus, entropy));
    Member member;
    member.tree = tree;
    member.port = PortOf(way[1]);
    member.up = network_.AddPath({way[0], way[1]});
    member.to_memory = graph_.ReverseLink(way[0]);
    member.links = way;
    member.links.push_back(graph_.ReverseLink(way[1]));
    member.links.push_back(member.to_memory);
    members_.push_back(std::move(member));
  }
  AddNodes(first_member, ways);
  return FlowId{first_member};
}

// Routes to one destination with the same entropy merge and do not split again. Adds the tree's
// switches from the root down, each once.
void AggregationTransport::AddNodes(uint32_t first_member,
                                    std::span<const std::vector<LinkId>> ways) {
  struct Branch {
    LinkId link{0};                 // down
    FlowId member = FlowId::kNone;  // whose NIC is at its end
    std::vector<uint32_t> members{};
  };
  std::map<DeviceId, std::map<LinkId, Branch>> below;  // by switch, by link up to it
  std::map<DeviceId, LinkId> up_of;
  for (uint32_t i = 0; i < ways.size(); ++i) {
    for (size_t hop = 1; hop < ways[i].size(); ++hop) {
      const LinkId link = ways[i][hop];
      Branch& branch = below[graph_.link_target(link)][link];
      branch.link = graph_.ReverseLink(link);
      if (hop == 1) branch.member = FlowId{first_member + i};
      branch.members.push_back(first_member + i);
      if (hop == 1) continue;
      const auto [at, is_new] = up_of.try_emplace(graph_.link_source(link), link);
      SIM_CHECK(is_new || at->second == link, "routes to one NIC that part again");
    }
  }
  std::map<DeviceId, uint32_t> node_at;
  const auto first_node = network_.reduction().node_count();
  for (const auto& [device, branches] : below) {
    node_at.emplace(device, first_node + static_cast<uint32_t>(node_at.size()));
  }
  for (const auto& [device, branches] : below) {
    AggregationNode node;
    for (const auto& [up_link, branch] : branches) {
      const bool is_nic = branch.member != FlowId::kNone;
      node.down.push_back({branch.link,
                           is_nic ? branch.member : node_at.at(graph_.link_source(up_link)),
                           branch.members});
      if (is_nic) members_[branch.member].node = node_at.at(device);
    }
    if (const auto up = up_of.find(device); up != up_of.end()) {
      node.up = {up->second, node_at.at(graph_.link_target(up->second))};
    }
    network_.reduction().AddNode(std::move(node));
  }
}

AggregationTransport::PortId AggregationTransport::PortOf(LinkId wire) {
  PortId& port = port_of_link_[wire];
  if (port == PortId::kNone) {
    port = PortId{ports_.size()};
    ports_.push_back(
        {.wire = wire,
         .backlog_max_ps = ReadAheadPs(graph_, network_, wire, mtu_bytes_ + header_bytes_)});
  }
  return port;
}

void AggregationTransport::Join(FlowId member, const SinkRef& sink) {
  members_[member].user = sink;
}

std::vector<LinkShare> AggregationTransport::LinkSharesOf(FlowId member) const {
  std::vector<LinkShare> shares;
  for (const LinkId link : LinksOf(member)) shares.push_back({link, 1});
  return shares;
}

// --- Turns ---------------------------------------------------------------------------------------

void AggregationTransport::Post(FlowId id, const Aggregation& operation) {
  SIM_CHECK(operation.bytes < UINT32_MAX && operation.blocks > 0 &&
                operation.bytes % operation.blocks == 0 &&
                operation.owner + operation.blocks <= trees_[members_[id].tree].member_count,
            "an operand of 4 GiB or more, or of blocks that nobody has");
  const uint64_t block_bytes = operation.bytes / operation.blocks;
  const uint64_t packets = std::max<uint64_t>(1, DivideUp(block_bytes, mtu_bytes_));
  members_[id].messages.push_back(
      {.operation = operation, .packets_of_block = static_cast<uint32_t>(packets)});
  Activate(id);
}

bool AggregationTransport::MaySend(const Member& member) const {
  return !member.is_closed && member.sending < member.messages.size() &&
         member.next_piece - member.results < window_packets_;
}

void AggregationTransport::Activate(FlowId id) {
  Member& member = members_[id];
  if (member.is_active || !MaySend(member)) return;
  member.is_active = true;
  Port& port = ports_[member.port];
  port.turns.push_back(id);
  ScheduleServe(member.port, port.free_ps);
}

void AggregationTransport::ScheduleServe(PortId id, int64_t time_ps) {
  Port& port = ports_[id];
  time_ps = std::max(time_ps, network_.engine().NowPs());
  if (port.event_ps <= time_ps) return;
  port.event_ps = time_ps;
  network_.engine().ScheduleFabric(time_ps, event_order::kAggregationPort, id, id);
}

void AggregationTransport::OnLinkReleased(LinkId link) {
  const PortId id = port_of_link_[link];
  if (id != PortId::kNone && !ports_[id].turns.empty()) ScheduleServe(id, ports_[id].free_ps);
}

void AggregationTransport::Serve(PortId id) {
  Port& port = ports_[id];
  const int64_t now_ps = network_.engine().NowPs();
  if (port.event_ps != now_ps) return;  // an earlier turn took its place
  port.event_ps = kNeverPs;
  const int64_t too_much_ps = network_.BacklogPs(port.wire) - port.backlog_max_ps;
  if (too_much_ps > 0) {
    // Tries again when the backlog has drained, or in OnLinkReleased().
    if (!network_.IsHeld(port.wire)) ScheduleServe(id, now_ps + too_much_ps);
    return;
  }
  const FlowId member = port.turns.front();
  port.turns.pop_front();
  members_[member].is_active = false;
  if (MaySend(members_[member])) port.free_ps = now_ps + SendPacket(member);
  Activate(member);
  if (!port.turns.empty()) ScheduleServe(id, port.free_ps);
}

// Returns the time that the packet takes on the wire.
int64_t AggregationTransport::SendPacket(FlowId id) {
  Member& member = members_[id];
  Message& message = member.messages[member.sending];
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  const Aggregation& operation = message.operation;
  const uint32_t block = message.sent / message.packets_of_block;
  const uint64_t within_bytes = uint64_t{message.sent % message.packets_of_block} * mtu_bytes_;
  const uint64_t bytes =
      std::min<uint64_t>(operation.bytes / operation.blocks - within_bytes, mtu_bytes_);
  const uint32_t owner = trees_[member.tree].first_member + operation.owner + block;
  const bool gives = operation.kind != Aggregation::Kind::kGather || owner == id;
  packet.timestamp_ps = network_.engine().NowPs();
  packet.acknowledged = operation.kind == Aggregation::Kind::kReduce ? id : owner;
  packet.echo = static_cast<uint16_t>(bytes);
  if (operation.kind == Aggregation::Kind::kScatter) packet.flags |= Packet::kForOne;
  packet.flow = member.node;
  packet.sequence = member.next_piece++;
  packet.path = member.up.first;
  packet.hop_count = member.up.hop_count;
  packet.kind = PacketKind::kAggregateOperand;
  packet.payload_bytes = gives ? packet.echo : 0;
  packet.wire_bytes = static_cast<uint16_t>(packet.payload_bytes + header_bytes_);
  if (++message.sent == message.packets()) ++member.sending;
  const int64_t wire_ps = network_.TransmissionPs(ports_[member.port].wire, packet.wire_bytes);
  network_.Inject(index);
  return wire_ps;
}

// --- Results -------------------------------------------------------------------------------------

void AggregationTransport::OnPacketAtNic(PacketId index) {
  Packet& packet = network_.packet(index);
  packet.next_link = members_[packet.flow].to_memory;
  network_.SendOn(index);
}

// Results arrive in the order of the operands, because all packets of a tree use the same path.
void AggregationTransport::OnPacketInMemory(PacketId index) {
  const FlowId id{network_.packet(index).flow};
  network_.Deliver(index);
  Member& member = members_[id];
  ++member.results;
  Message& message = member.messages.front();
  const bool is_complete = ++message.received == message.packets();
  if (is_complete) {
    member.messages.pop_front();
    --member.sending;
  }
  Activate(id);
  if (!is_complete) return;
  const SinkRef user = members_[id].user;
  user.sink->OnDelivered(user.number);
}

void AggregationTransport::OnPacketDropped(PacketId index, DropReason reason, LinkId link) {
  const Tree& tree = trees_[members_[network_.packet(index).acknowledged].tree];
  // Finds the first of its members that takes part.
  uint32_t id = tree.first_member;
  while (members_[id].user.sink == nullptr) ++id;
  const SinkRef user = members_[id].user;
  user.sink->OnPacketLost(user.number, {.reason = reason, .link = link});
  user.sink->OnFailed(
      user.number, true,
      {.why =
           fmt::format("an aggregation tree of {} NICs lost a packet, which SHARP does not survive",
                       tree.member_count)});
}

void AggregationTransport::Visit(StateArchive& archive) {
  archive.Section();
  archive.Named("members").Constant(members_.size());
  for (size_t id = 0; id < members_.size(); ++id) {
    if (members_[id].is_closed) {  // its remaining state has no effect
      archive.Require(!members_[id].is_active);
    } else {
      VisitFields(members_[id], id, archive);
    }
  }
  VisitFields(ports_, archive);
}

}  // namespace railyard
