// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/in_network/in_network_reduction.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr uint16_t kNoBranch = UINT16_MAX;

// The branch below the node that leads to the member that the packet names; kNoBranch: it is
// elsewhere.
uint16_t BranchTo(const AggregationNode& node, const Packet& packet) {
  const auto member = static_cast<uint32_t>(packet.acknowledged);
  const auto branch = std::ranges::find_if(node.down, [&](const auto& next) {
    return std::ranges::binary_search(next.members, member);
  });
  if (branch == node.down.end()) return kNoBranch;
  return static_cast<uint16_t>(branch - node.down.begin());
}

}  // namespace

uint32_t InNetworkReduction::AddSwitchGroup(uint16_t gpu_count,
                                            const std::vector<LinkId>& up_links) {
  const FabricGraph& graph = *tables_.graph;
  for (const LinkId link : up_links) {
    SIM_CHECK(graph.device(graph.link_target(link)).kind == DeviceKind::kNvSwitch,
              "a group of GPUs without an NVSwitch");
    tables_.links[link].arrival = LinkRecord::Arrival::kCombining;
  }
  counters_.resize(tables_.links.size());
  groups_.emplace_back(gpu_count);
  return static_cast<uint32_t>(groups_.size() - 1);
}

uint32_t InNetworkReduction::AddNode(AggregationNode node) {
  SIM_CHECK(!node.down.empty(), "a node of an aggregation tree with nothing below it");
  const auto combine_from = [this](LinkId link) {
    tables_.links[tables_.graph->ReverseLink(link)].arrival = LinkRecord::Arrival::kCombining;
  };
  for (const AggregationNode::Next& down : node.down) combine_from(down.link);
  if (node.up) combine_from(node.up->link);
  const auto below = static_cast<uint16_t>(node.down.size());
  counters_.resize(tables_.links.size());
  nodes_.push_back({std::move(node), SwitchGroup(below)});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

InNetworkReduction::Outcome InNetworkReduction::Arrive(PacketId index) {
  sent_on_.clear();
  const Packet& packet = tables_.packets[index];
  switch (packet.kind) {
    case PacketKind::kNvlinkMulticast:
    case PacketKind::kNvlinkReadRequest:
      return ReplicateInNvSwitch(index);
    case PacketKind::kNvlinkOperand:
      if (groups_[packet.flow].CountOperand(packet.sequence)) return SendOn(index);
      CountTaken(packet);
      return {.sent_on = {}, .taken = index};
    case PacketKind::kAggregateOperand:
      return TakeAggregateOperand(index);
    case PacketKind::kAggregateResult:
      SendDown(index);
      return {.sent_on = sent_on_};
    default:
      return SendOn(index);
  }
}

InNetworkReduction::Outcome InNetworkReduction::SendOn(PacketId index) {
  sent_on_.push_back(index);
  return {.sent_on = sent_on_};
}

InNetworkReduction::Outcome InNetworkReduction::ReplicateInNvSwitch(PacketId index) {
  const Packet& packet = tables_.packets[index];
  const uint32_t first_down = packet.path + 1;
  const uint16_t copies = groups_[packet.flow].gpu_count();
  const auto link_of = [&](uint16_t i) { return paths_.LinkAt(first_down + i); };
  Replicate(index, copies, LongestOf(copies, link_of), link_of,
            [](Packet& copy, uint16_t i) { copy.tag = i; });
  return {.sent_on = sent_on_};
}

InNetworkReduction::Outcome InNetworkReduction::TakeAggregateOperand(PacketId index) {
  CombiningNode& here = nodes_[tables_.packets[index].flow];
  Outcome outcome;
  if (!here.operands.CountOperand(tables_.packets[index].sequence)) {
    CountTaken(tables_.packets[index]);
    outcome.taken = index;
    return outcome;
  }
  const bool is_empty = tables_.packets[index].payload_bytes < tables_.packets[index].echo;
  if (is_empty && BranchTo(here.node, tables_.packets[index]) != kNoBranch) {
    outcome.taken = index;
    index = Refill(index);
  }
  Packet& packet = tables_.packets[index];
  if (here.node.up) {
    packet.hop = 0;  // every node names the next link itself
    packet.hop_count = 1;
    packet.flow = here.node.up->flow;
    packet.next_link = here.node.up->link;
    sent_on_.push_back(index);
  } else {
    packet.kind = PacketKind::kAggregateResult;
    SendDown(index);
  }
  outcome.sent_on = sent_on_;
  return outcome;
}

// The only operand with a payload came before others, and was taken out: the payload goes on with
// the last.
PacketId InNetworkReduction::Refill(PacketId index) {
  const PacketId full = tables_.packets.Allocate();
  tables_.packets[full] = tables_.packets[index];
  telemetry_.Copy(index, full);
  Packet& packet = tables_.packets[full];
  packet.ingress = VirtualChannelId::kNone;
  packet.payload_bytes = packet.echo;
  packet.wire_bytes = static_cast<uint16_t>(packet.wire_bytes + packet.echo);
  tables_.counters.replicated_bytes += packet.payload_bytes;
  InSwitchCounters& made = counters_[packet.link];
  made.replicated_bytes += packet.payload_bytes;
  ++made.packets;
  CountTaken(tables_.packets[index]);
  return full;
}

void InNetworkReduction::SendDown(PacketId index) {
  Packet& packet = tables_.packets[index];
  packet.hop = 0;
  packet.hop_count = 1;
  const AggregationNode& node = nodes_[packet.flow].node;
  const auto copies = static_cast<uint16_t>(node.down.size());
  const auto link_of = [&](uint16_t i) { return node.down[i].link; };
  const uint16_t to_one =
      (packet.flags & Packet::kForOne) != 0 ? BranchTo(node, packet) : kNoBranch;
  const uint16_t last = to_one != kNoBranch ? to_one : LongestOf(copies, link_of);
  Replicate(index, copies, last, link_of, [&](Packet& copy, uint16_t i) {
    copy.flow = node.down[i].flow;
    if (to_one == kNoBranch || i == to_one) return;
    copy.wire_bytes = static_cast<uint16_t>(copy.wire_bytes - copy.payload_bytes);
    copy.payload_bytes = 0;
  });
}

// The room in front of the switch is free again when the last copy has left.
template <typename Links>
uint16_t InNetworkReduction::LongestOf(uint16_t copies, const Links& link_of) const {
  uint16_t longest = 0;
  for (uint16_t i = 1; i < copies; ++i) {
    if (tables_.BacklogPs(link_of(i)) > tables_.BacklogPs(link_of(longest))) longest = i;
  }
  return longest;
}

// The i-th copy goes over link_of(i), and address() makes it the i-th; the packet itself becomes
// the `last`. Every copy goes to another link, so their order has no effect.
template <typename Links, typename Address>
void InNetworkReduction::Replicate(PacketId index, uint16_t copies, uint16_t last,
                                   const Links& link_of, const Address& address) {
  address(tables_.packets[index], last);
  tables_.packets[index].next_link = link_of(last);
  InSwitchCounters& made = counters_[tables_.packets[index].link];
  if (!IsData(tables_.packets[index].kind)) {
    ++made.requests;
    made.request_copies += copies;
  }
  for (uint16_t i = 0; i < copies; ++i) {
    if (i == last) continue;
    const PacketId copy_index = tables_.packets.Allocate();
    Packet& copy = tables_.packets[copy_index];
    copy = tables_.packets[index];
    telemetry_.Copy(index, copy_index);
    copy.ingress = VirtualChannelId::kNone;
    address(copy, i);
    copy.next_link = link_of(i);
    if (IsData(copy.kind)) {
      tables_.counters.replicated_bytes += copy.payload_bytes;
      made.replicated_bytes += copy.payload_bytes;
    }
    ++made.packets;
    sent_on_.push_back(copy_index);
  }
  sent_on_.push_back(index);
}

void InNetworkReduction::CountTaken(const Packet& packet) {
  tables_.counters.reduced_bytes += packet.payload_bytes;
  counters_[packet.link].reduced_bytes += packet.payload_bytes;
  --counters_[packet.link].packets;
}

}  // namespace railyard
