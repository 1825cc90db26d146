// SPDX-License-Identifier: GPL-2.0-only
// What switches do besides forwarding (NVLink SHARP, InfiniBand's SHARP): they send a packet to
// every GPU of a group or every branch of a tree, and make one packet of one from each.
#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

constexpr uint16_t kNoBranch = UINT16_MAX;

// Which branch below the node leads to the member that the packet names; kNoBranch: it is
// elsewhere.
uint16_t BranchTo(const FabricNetwork::AggregationNode& node, const Packet& packet) {
  const auto member = static_cast<uint32_t>(packet.acknowledged);
  const auto branch = std::ranges::find_if(node.down, [&](const auto& next) {
    return std::ranges::binary_search(next.members, member);
  });
  if (branch == node.down.end()) return kNoBranch;
  return static_cast<uint16_t>(branch - node.down.begin());
}

}  // namespace

bool SwitchGroup::CountOperand(uint32_t piece) {
  while (piece - first_piece_ >= come_.size()) Grow();
  const auto slot = [this](uint32_t of) -> uint16_t& { return come_[of & (come_.size() - 1)]; };
  if (++slot(piece) < gpu_count_) return false;
  while (slot(first_piece_) == gpu_count_) slot(first_piece_++) = 0;
  return true;
}

void SwitchGroup::Grow() {
  std::vector<uint16_t> grown(2 * come_.size());
  for (uint32_t i = 0; i < come_.size(); ++i) {
    const uint32_t piece = first_piece_ + i;
    grown[piece & (grown.size() - 1)] = come_[piece & (come_.size() - 1)];
  }
  come_.swap(grown);
}

uint32_t FabricNetwork::AddSwitchGroup(uint16_t gpu_count, const std::vector<LinkId>& up_links) {
  for (const LinkId link : up_links) {
    SIM_CHECK(graph_->device(graph_->link_target(link)).kind == DeviceKind::kNvSwitch,
              "a group of GPUs without an NVSwitch");
    links_[link].arrival = Link::Arrival::kCombining;
  }
  in_switch_.resize(links_.size());
  groups_.emplace_back(gpu_count);
  return static_cast<uint32_t>(groups_.size() - 1);
}

uint32_t FabricNetwork::AddAggregationNode(AggregationNode node) {
  SIM_CHECK(!node.down.empty(), "a node of an aggregation tree with nothing below it");
  for (const AggregationNode::Next& down : node.down) {
    links_[graph_->ReverseLink(down.link)].arrival = Link::Arrival::kCombining;
  }
  if (node.up) links_[graph_->ReverseLink(node.up->link)].arrival = Link::Arrival::kCombining;
  const auto below = static_cast<uint16_t>(node.down.size());
  in_switch_.resize(links_.size());
  aggregation_nodes_.push_back({std::move(node), SwitchGroup(below)});
  return static_cast<uint32_t>(aggregation_nodes_.size() - 1);
}

void FabricNetwork::ArriveAtCombiningSwitch(uint32_t index) {
  const Packet& packet = packets_[index];
  switch (packet.kind) {
    case PacketKind::kNvlinkMulticast:
    case PacketKind::kNvlinkReadRequest:
      ReplicateInNvSwitch(index);
      break;
    case PacketKind::kNvlinkOperand:
      if (groups_[packet.flow].CountOperand(packet.sequence)) {
        Transmit(index);
      } else {
        TakeOperand(index);
      }
      break;
    case PacketKind::kAggregateOperand:
      TakeAggregateOperand(index);
      break;
    case PacketKind::kAggregateResult:
      SendDown(index);
      break;
    default:
      Transmit(index);
  }
}

void FabricNetwork::ReplicateInNvSwitch(uint32_t index) {
  const uint32_t first_down = packets_[index].path + 1;
  const uint16_t copies = groups_[packets_[index].flow].gpu_count();
  const auto link_of = [&](uint16_t i) { return paths_[first_down + i]; };
  Replicate(index, copies, LongestOf(copies, link_of), link_of,
            [](Packet& packet, uint16_t i) { packet.tag = i; });
}

void FabricNetwork::TakeAggregateOperand(uint32_t index) {
  CombiningNode& here = aggregation_nodes_[packets_[index].flow];
  if (!here.operands.CountOperand(packets_[index].sequence)) {
    TakeOperand(index);
    return;
  }
  const bool is_empty = packets_[index].payload_bytes < packets_[index].echo;
  if (is_empty && BranchTo(here.node, packets_[index]) != kNoBranch) index = Refill(index);
  Packet& packet = packets_[index];
  if (here.node.up) {
    packet.hop = 0;  // every node names the next link itself
    packet.hop_count = 1;
    packet.flow = here.node.up->flow;
    packet.next_link = here.node.up->link;
    Transmit(index);
  } else {
    packet.kind = PacketKind::kAggregateResult;
    SendDown(index);
  }
}

// The only operand with a payload came before others, and was taken out: the payload goes on with
// the last.
uint32_t FabricNetwork::Refill(uint32_t index) {
  const uint32_t full = packets_.Allocate();
  packets_[full] = packets_[index];
  CopyTelemetry(index, full);
  Packet& packet = packets_[full];
  packet.ingress = Packet::kNone;
  packet.payload_bytes = packet.echo;
  packet.wire_bytes = static_cast<uint16_t>(packet.wire_bytes + packet.echo);
  counters_.replicated_bytes += packet.payload_bytes;
  InSwitchCounters& made = in_switch_[packet.link];
  made.replicated_bytes += packet.payload_bytes;
  ++made.packets;
  TakeOperand(index);
  return full;
}

void FabricNetwork::SendDown(uint32_t index) {
  Packet& packet = packets_[index];
  packet.hop = 0;
  packet.hop_count = 1;
  const AggregationNode& node = aggregation_nodes_[packet.flow].node;
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
uint16_t FabricNetwork::LongestOf(uint16_t copies, const Links& link_of) const {
  uint16_t longest = 0;
  for (uint16_t i = 1; i < copies; ++i) {
    if (BacklogPs(link_of(i)) > BacklogPs(link_of(longest))) longest = i;
  }
  return longest;
}

// The i-th copy goes over link_of(i), and address() makes it the i-th; the packet itself becomes
// the `last`. Every copy goes to another link, so their order has no effect.
template <typename Links, typename Address>
void FabricNetwork::Replicate(uint32_t index, uint16_t copies, uint16_t last, const Links& link_of,
                              const Address& address) {
  address(packets_[index], last);
  packets_[index].next_link = link_of(last);
  InSwitchCounters& made = in_switch_[packets_[index].link];
  if (!IsData(packets_[index].kind)) {
    ++made.requests;
    made.request_copies += copies;
  }
  for (uint16_t i = 0; i < copies; ++i) {
    if (i == last) continue;
    const uint32_t copy = packets_.Allocate();
    packets_[copy] = packets_[index];
    CopyTelemetry(index, copy);
    packets_[copy].ingress = Packet::kNone;
    address(packets_[copy], i);
    packets_[copy].next_link = link_of(i);
    if (IsData(packets_[copy].kind)) {
      counters_.replicated_bytes += packets_[copy].payload_bytes;
      made.replicated_bytes += packets_[copy].payload_bytes;
    }
    ++made.packets;
    Transmit(copy);
  }
  Transmit(index);
}

void FabricNetwork::TakeOperand(uint32_t index) {
  const Packet& packet = packets_[index];
  const LinkId id = packet.link;
  const uint32_t credit_bytes = CreditBytesOf(packet);
  counters_.reduced_bytes += packet.payload_bytes;
  in_switch_[id].reduced_bytes += packet.payload_bytes;
  --in_switch_[id].packets;
  FreePacket(index);
  if (credit_bytes != 0) ReturnCredit(id, credit_bytes);
}

}  // namespace railyard
