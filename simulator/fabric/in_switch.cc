// SPDX-License-Identifier: GPL-2.0-only
// What NVSwitches do besides forwarding (NVLink SHARP): they send a packet to every GPU of a group,
// and make one packet of one from each.
#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

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
    links_[link].arrival = Link::Arrival::kNvSwitch;
  }
  in_switch_.resize(links_.size());
  groups_.emplace_back(gpu_count);
  return static_cast<uint32_t>(groups_.size() - 1);
}

void FabricNetwork::ArriveAtNvSwitch(uint32_t index) {
  const Packet& packet = packets_[index];
  switch (packet.kind) {
    case PacketKind::kNvlinkMulticast:
    case PacketKind::kNvlinkReadRequest:
      Replicate(index);
      break;
    case PacketKind::kNvlinkOperand:
      if (groups_[packet.flow].CountOperand(packet.sequence)) {
        Transmit(index);
      } else {
        TakeOperand(index);
      }
      break;
    default:
      Transmit(index);
  }
}

// Every copy goes to another link, so their order has no effect.
void FabricNetwork::Replicate(uint32_t index) {
  const uint32_t first_down = packets_[index].path + 1;
  const uint16_t copies = groups_[packets_[index].flow].gpu_count();
  // The room in front of the switch is free again when the last copy has left.
  uint16_t longest = 0;
  for (uint16_t i = 1; i < copies; ++i) {
    if (BacklogPs(paths_[first_down + i]) > BacklogPs(paths_[first_down + longest])) longest = i;
  }
  packets_[index].tag = longest;
  packets_[index].next_link = paths_[first_down + longest];
  InSwitchCounters& made = in_switch_[packets_[index].link];
  if (!IsData(packets_[index].kind)) {
    ++made.requests;
    made.request_copies += copies;
  }
  for (uint16_t i = 0; i < copies; ++i) {
    if (i == longest) continue;
    const uint32_t copy = packets_.Allocate();
    packets_[copy] = packets_[index];
    CopyTelemetry(index, copy);
    packets_[copy].ingress = Packet::kNone;
    packets_[copy].tag = i;
    packets_[copy].next_link = paths_[first_down + i];
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
