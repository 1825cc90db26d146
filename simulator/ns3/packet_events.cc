// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/ns3/packet_events.h"

namespace railyard {

std::string_view PacketKindName(PacketKind kind) {
  switch (kind) {
    case PacketKind::kNvlinkReadRequest:
      return "NVLINK_READ_REQUEST";
    case PacketKind::kHostReadRequest:
      return "HOST_READ_REQUEST";
    case PacketKind::kHostRead:
      return "HOST_READ";
    case PacketKind::kNvlinkOperand:
      return "NVLINK_OPERAND";
    case PacketKind::kNvlinkMulticast:
      return "NVLINK_MULTICAST";
    case PacketKind::kNvlinkWrite:
      return "NVLINK_WRITE";
    case PacketKind::kAggregateOperand:
      return "AGGREGATE_OPERAND";
    case PacketKind::kAggregateResult:
      return "AGGREGATE_RESULT";
    case PacketKind::kNetworkData:
      return "NETWORK_DATA";
    case PacketKind::kClearToSend:
      return "CLEAR_TO_SEND";
    case PacketKind::kAck:
      return "ACK";
    case PacketKind::kNack:
      return "NACK";
    case PacketKind::kCnp:
      return "CNP";
    case PacketKind::kUnreliableSend:
      return "UNRELIABLE_SEND";
    case PacketKind::kEthernetFrame:
      return "ETHERNET_FRAME";
  }
  return "";
}

PacketEvent EventOf(const Packet& packet, const FabricNetwork& network, const FabricGraph& graph,
                    std::optional<DropReason> loss) {
  PacketEvent event{.kind = PacketKindName(packet.kind),
                    .flow = packet.flow,
                    .sequence = packet.sequence,
                    .wire_bytes = packet.wire_bytes,
                    .payload_bytes = IsData(packet.kind) ? DataBytes(packet) : 0,
                    .is_marked = (packet.flags & Packet::kEcnMarked) != 0,
                    .is_retransmitted = (packet.flags & Packet::kRetransmitted) != 0};
  if (loss) event.reason = DropReasonName(*loss);
  event.link = graph.link(packet.link).name;
  // A packet that was dropped in front of a link has no times on it.
  if (packet.arrival_ps == 0) return event;
  const int64_t received_ps = network.LastBitPs(packet);
  event.received = ns3::TimeStep(static_cast<uint64_t>(received_ps));
  event.sent =
      ns3::TimeStep(static_cast<uint64_t>(received_ps - graph.link(packet.link).propagation_ps));
  return event;
}

}  // namespace railyard
