// SPDX-License-Identifier: GPL-2.0-only
// Receiving ends of queue pairs: acceptance, acknowledgement and delivery of packets.
#include <algorithm>
#include <bit>

#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/transport/rdma/rdma_transport.h"

namespace railyard {

void RdmaTransport::OnWrite(PacketId index) {
  const QueueId queue_id{network_.packet(index).flow};
  if (receive_queues_[queue_id].is_broken) [[unlikely]] {
    Refuse(index, DropReason::kQueuePairError);
    return;
  }
  if ((network_.packet(index).flags & Packet::kEcnMarked) != 0) [[unlikely]]
    OnMarked(queue_id);
  const Packet& packet = network_.packet(index);
  ReceiveQueue& queue = receive_queues_[queue_id];
  const int32_t distance = SequenceDistance(packet.sequence, queue.expected);
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  if (distance > 0) [[unlikely]] {
    OnAhead(index, static_cast<uint32_t>(distance));
    return;
  }
  uint32_t completed = is_last ? 1 : 0;
  bool is_gone = false;  // more than the gap just filled is missing
  ++queue.unreported;
  if (distance == 0) [[likely]] {
    ++queue.expected;
    queue.nack_sent = false;
    if ((queue.beyond | queue.reported) != 0) [[unlikely]]
      completed += TakeBeyond(queue);
    is_gone = queue.refused && IsGone(queue);
  }
  if (is_gone) [[unlikely]] {
    queue.refused = false;
    queue.unreported = 0;
    Acknowledge(queue_id, PacketKind::kNack, index, 0);
  } else if (completed != 0 || queue.unreported >= queue.ack_every_packets) {
    queue.unreported = 0;
    Acknowledge(queue_id, PacketKind::kAck, index, queue.beyond);
  }
  if (distance == 0) [[likely]] {
    Accept(index, completed);
  } else {
    Refuse(index, DropReason::kDuplicate);
  }
}

// Returns whether the sender must go back to the expected packet. With selective repeat that is so
// if the packet was refused, or nothing beyond it was kept.
bool RdmaTransport::IsGone(const ReceiveQueue& queue) const {
  const bool is_selective = settings_.recovery == Recovery::kSelectiveRepeat;
  return SequenceDistance(queue.expected, queue.first_refused) >= 0 ||
         (is_selective && queue.beyond == 0);
}

// A sender that goes back sends again what was refused before, but not a packet that is refused
// after that.
void RdmaTransport::NoteRefused(ReceiveQueue& queue, const Packet& packet) const {
  const bool is_selective = settings_.recovery == Recovery::kSelectiveRepeat;
  const bool was_repeated = (packet.flags & Packet::kRetransmitted) != 0;
  if (!is_selective && (!was_repeated || settings_.reorder_tolerance_packets == 0)) return;
  if (queue.refused && SequenceDistance(packet.sequence, queue.first_refused) >= 0) return;
  queue.refused = true;
  queue.first_refused = packet.sequence;
}

// Takes the packets that were waiting behind the one before `expected`. Returns the number of
// messages that end there.
uint32_t RdmaTransport::TakeBeyond(ReceiveQueue& queue) {
  const int count = std::countr_one(queue.beyond);
  const uint64_t mask = count == 64 ? UINT64_MAX : (uint64_t{1} << count) - 1;
  const auto completed = static_cast<uint32_t>(std::popcount(queue.ends & mask));
  queue.expected += static_cast<uint32_t>(count);
  queue.unreported += static_cast<uint32_t>(count);
  // The next packet, at bit `count`, is missing; the bits then count from the packet after it.
  const auto shift = [count](uint64_t bits) { return count >= 63 ? 0 : bits >> (count + 1); };
  queue.beyond = shift(queue.beyond);
  queue.ends = shift(queue.ends);
  queue.reported -= static_cast<uint8_t>(std::min<int>(queue.reported, count + 1));
  return completed;
}

// Handles a packet behind a gap of `distance` packets. Returns true if it was taken, because all of
// the missing packets belong to its message and are dispensable.
bool RdmaTransport::DoWithout(PacketId index, uint32_t distance) {
  const Packet& packet = network_.packet(index);
  ReceiveQueue& queue = receive_queues_[packet.flow];
  const auto number = static_cast<uint32_t>(packet.acknowledged);
  const auto dispensable = static_cast<uint32_t>(packet.acknowledged >> 32);
  const uint32_t message = packet.sequence - number;
  const uint32_t missing_before = queue.missing_of == message ? queue.missing : 0;
  // If packets beyond the gap are kept or were refused, a retransmission is already requested.
  if (number < distance || missing_before + distance > dispensable || queue.beyond != 0 ||
      queue.refused) {
    return false;
  }
  queue.missing_of = message;
  queue.missing = missing_before + distance;
  counters_.missing_packets += distance;
  counters_.missing_bytes += uint64_t{distance} * settings_.mtu_bytes;
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  queue.expected = packet.sequence + 1;
  queue.nack_sent = false;
  queue.reported = 0;
  queue.unreported = 0;
  Acknowledge(QueueId{packet.flow}, PacketKind::kAck, index, queue.beyond);
  Accept(index, is_last ? 1 : 0);
  return true;
}

// Handles a packet that arrived `distance` beyond the expected one.
void RdmaTransport::OnAhead(PacketId index, uint32_t distance) {
  if (network_.packet(index).acknowledged != 0 && DoWithout(index, distance)) return;
  const QueueId queue_id{network_.packet(index).flow};
  ReceiveQueue& queue = receive_queues_[queue_id];
  const uint32_t tolerance = settings_.reorder_tolerance_packets;
  const bool is_selective = settings_.recovery == Recovery::kSelectiveRepeat;
  const bool is_kept = distance <= (is_selective ? ReceiveQueue::kBeyondPackets : tolerance);
  if (is_kept) {
    const uint64_t bit = uint64_t{1} << (distance - 1);
    if ((queue.beyond & bit) != 0) {
      Refuse(index, DropReason::kDuplicate);
      return;
    }
    queue.beyond |= bit;
    if ((network_.packet(index).flags & Packet::kLastOfMessage) != 0) queue.ends |= bit;
  } else {
    NoteRefused(queue, network_.packet(index));
  }
  if (is_selective ? ReportGaps(queue, distance) : distance > tolerance && !queue.nack_sent) {
    queue.nack_sent = true;
    ++counters_.nacks;
    Acknowledge(queue_id, PacketKind::kNack, index, queue.beyond);
  }
  if (is_kept) {
    Accept(index, 0);
  } else {
    Refuse(index, DropReason::kOutOfSequence);
  }
}

// Returns whether a packet `distance` beyond the expected one shows a gap that was not reported
// yet, and marks such gaps as reported.
bool RdmaTransport::ReportGaps(ReceiveQueue& queue, uint32_t distance) const {
  if (distance <= settings_.reorder_tolerance_packets) return false;
  const uint32_t lost_end =
      std::min(distance - settings_.reorder_tolerance_packets, ReceiveQueue::kBeyondPackets);
  if (lost_end <= queue.reported) return false;
  // Bit i is set if the packet i beyond the expected one has not arrived.
  const uint64_t missing = ~(queue.beyond << 1);
  const uint64_t before_end = UINT64_MAX >> (64 - lost_end);
  const uint64_t is_new = (missing & before_end) >> queue.reported;
  queue.reported = static_cast<uint8_t>(lost_end);
  return is_new != 0;
}

void RdmaTransport::Accept(PacketId index, uint32_t completed) {
  Packet& packet = network_.packet(index);
  const QueueId queue_id{packet.flow};
  if (IsDataQueue(queue_id)) {
    packet.flags |= Packet::kAccepted;
    packet.acknowledged = completed;  // for OnPacketInMemory()
    network_.SendOn(index);
    return;
  }
  network_.FreePacket(index);
  const SinkRef user = UserOf(queue_id);
  for (; completed > 0; --completed) user.sink->OnGranted(user.number);
}

void RdmaTransport::Acknowledge(QueueId queue_id, PacketKind kind, PacketId cause, uint64_t kept) {
  ReceiveQueue& queue = receive_queues_[queue_id];
  network_.paths().Fetch(queue.ack_first_link);
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.timestamp_ps = network_.packet(cause).timestamp_ps;
  packet.acknowledged = kept;
  packet.flow = queue_id;
  packet.sequence = queue.expected;
  packet.path = queue.ack_first_link;
  packet.hop_count = queue.ack_hop_count;
  packet.kind = kind;
  packet.wire_bytes = static_cast<uint16_t>(framing_.header_bytes + kAethBytes);
  packet.echo = queue.marked;
  queue.marked = 0;
  if (kinds_.needs_telemetry()) network_.telemetry().Copy(cause, index);
  network_.Inject(index);
}

// Handles the arrival of a packet that was marked by a switch.
void RdmaTransport::OnMarked(QueueId queue_id) {
  ++counters_.ecn_marked;
  ReceiveQueue& queue = receive_queues_[queue_id];
  ++queue.marked;
  const int64_t now_ps = network_.engine().NowPs();
  if (!KindOf(queue_id).needs.cnp || now_ps < queue.next_cnp_ps) return;
  queue.next_cnp_ps = now_ps + KindOfReceiver(queue_id).settings.cnp_interval_ps;
  ++counters_.cnp;
  NicOf(OtherQueueOf(queue_id)).NotifyCnpSent({now_ps, QueuePairOf(queue_id)});
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = queue_id;
  packet.path = queue.ack_first_link;
  packet.hop_count = queue.ack_hop_count;
  packet.kind = PacketKind::kCnp;
  packet.wire_bytes = static_cast<uint16_t>(framing_.header_bytes + kCnpBytes);
  network_.Inject(index);
}

void RdmaTransport::OnPacketInMemory(PacketId index) {
  // The packets of a queue pair reach memory in the order in which the NIC accepted them. When the
  // packet that completed a message arrives, the whole message is therefore in memory.
  Deliver(index, network_.packet(index).acknowledged);
}

}  // namespace railyard
