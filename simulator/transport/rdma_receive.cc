// SPDX-License-Identifier: GPL-2.0-only
// The receiving ends of queue pairs: what is accepted, acknowledged and delivered.
#include "simulator/transport/rdma_transport.h"

namespace railyard {

void RdmaTransport::OnWrite(uint32_t index) {
  Packet& packet = network_.packet(index);
  const uint32_t queue_id = packet.flow;
  ReceiveQueue& queue = receive_queues_[queue_id];
  const int32_t distance = SequenceDistance(packet.sequence, queue.expected);
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  if (distance != 0) [[unlikely]] {
    const LinkId link =
        network_.LinkOfPath({packet.path, packet.hop_count}, static_cast<uint32_t>(packet.hop - 1));
    if (distance > 0) {
      network_.Drop(index, DropReason::kOutOfSequence, link);
      if (queue.nack_sent) return;
      queue.nack_sent = true;
      ++counters_.nacks;
      Acknowledge(queue_id, PacketKind::kNack);
      return;
    }
    network_.Drop(index, DropReason::kDuplicate, link);
    // Coalesced as well: a whole window of them may end no message.
    ++queue.unreported;
  } else {
    if (IsData(queue_id)) packet.flags |= Packet::kAccepted;  // before an ACK moves the pool
    ++queue.expected;
    ++queue.unreported;
    queue.nack_sent = false;
  }
  if (is_last || queue.unreported >= settings_.ack_every_packets) {
    queue.unreported = 0;
    Acknowledge(queue_id, PacketKind::kAck);
  }
  if (distance != 0) return;
  if (IsData(queue_id)) {
    network_.SendOn(index);
  } else {
    network_.FreePacket(index);
    listener_.OnClearToSend(PairOf(queue_id).connection);
  }
}

void RdmaTransport::Acknowledge(uint32_t queue_id, PacketKind kind) {
  const ReceiveQueue& queue = receive_queues_[queue_id];
  const uint32_t index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = queue_id;
  packet.sequence = queue.expected;
  packet.path = queue.ack_first_link;
  packet.hop_count = queue.ack_hop_count;
  packet.kind = kind;
  packet.wire_bytes = kRoceHeaderBytes + kAethBytes;
  network_.Inject(index);
}

void RdmaTransport::OnPacketAtGpu(uint32_t index) {
  const Packet& packet = network_.packet(index);
  const uint32_t queue_id = packet.flow;
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  network_.Deliver(index);
  if (is_last) listener_.OnMessageDelivered(PairOf(queue_id).connection);
}

}  // namespace railyard
