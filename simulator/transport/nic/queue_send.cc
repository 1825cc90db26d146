// SPDX-License-Identifier: GPL-2.0-only
// Sending of messages, packet by packet: the packet of a queue's turn, its limits, the duration of
// recoveries, and the completion of messages.
#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

void QueueTransport::PostMessage(QueueId queue_id, const MessageSize& size,
                                 uint32_t tolerance_ppm) {
  const uint64_t bytes = size.bytes;
  SIM_CHECK(bytes < UINT32_MAX, "an RDMA message of 4 GiB or more");
  SendQueue& queue = send_queues_[queue_id];
  MessageRing& messages = backlogs_[queue_id].messages;
  const uint32_t packets = PacketsOf(bytes);
  const uint32_t first_sequence = queue.posted_end;
  queue.posted_end += packets;
  if (messages.empty()) queue.oldest_end = queue.posted_end;
  constexpr uint64_t kMillion = 1'000'000;
  const uint64_t dispensable = uint64_t{packets} * tolerance_ppm / kMillion;
  if (tolerance_ppm > 0) [[unlikely]] {
    ++counters_.tolerant_messages;
    counters_.dispensable_packets += dispensable;
  }
  messages.PushBack({.first_sequence = first_sequence,
                     .end_sequence = queue.posted_end,
                     .bytes = static_cast<uint32_t>(bytes),
                     .dispensable = static_cast<uint32_t>(dispensable)},
                    static_cast<uint32_t>(size.data_bytes));
  if (size.has_flags()) [[unlikely]]
    queue.Set(SendQueue::kHasFlags);
  Activate(queue_id);
}

// Starts the next message.
void QueueTransport::TakeMessage(SendQueue& queue, SendBacklog& backlog) {
  queue.message = backlog.messages.at(backlog.next_message++);
}

// Returns the position of the oldest message that ends beyond `sequence`, or the end.
uint32_t QueueTransport::FindMessage(const MessageRing& messages, uint32_t sequence) {
  uint32_t position = messages.first();
  while (position != messages.end() &&
         SequenceDistance(messages.at(position).end_sequence, sequence) <= 0) {
    ++position;
  }
  return position;
}

// Makes `sequence` the next packet to be sent.
void QueueTransport::Seek(QueueId queue_id, uint32_t sequence) {
  SendQueue& queue = send_queues_[queue_id];
  SendBacklog& backlog = backlogs_[queue_id];
  queue.next_sequence = sequence;
  queue.message.end_sequence = sequence;
  backlog.next_message = FindMessage(backlog.messages, sequence);
  if (backlog.next_message != backlog.messages.end()) TakeMessage(queue, backlog);
}

int64_t QueueTransport::SendPacket(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kHasRepairs)) [[unlikely]]
    return SendRepair(queue_id);
  if (queue.next_sequence == queue.message.end_sequence) {
    TakeMessage(queue, backlogs_[queue_id]);
  }
  return SendPacketOf(queue_id, queue.next_sequence++, queue.message);
}

int64_t QueueTransport::SendAgain(QueueId queue_id, uint32_t sequence) {
  const MessageRing& messages = backlogs_[queue_id].messages;
  return SendPacketOf(queue_id, sequence, messages.at(FindMessage(messages, sequence)));
}

// Returns the packet's time on the port's wire.
int64_t QueueTransport::SendPacketOf(QueueId queue_id, uint32_t sequence,
                                     const MessageRing::Message& message) {
  SendQueue& queue = send_queues_[queue_id];
  const uint32_t offset = (sequence - message.first_sequence) * settings_.mtu_bytes;
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.timestamp_ps = network_.engine().NowPs();
  packet.flow = queue_id;
  packet.sequence = sequence;
  packet.path = queue.first_link;
  packet.hop_count = queue.hop_count;
  packet.kind = IsDataQueue(queue_id) ? PacketKind::kNetworkData : PacketKind::kClearToSend;
  packet.payload_bytes =
      static_cast<uint16_t>(std::min(message.bytes - offset, settings_.mtu_bytes));
  packet.wire_bytes = static_cast<uint16_t>(packet.payload_bytes + framing_.header_bytes +
                                            (offset == 0 ? framing_.first_packet_bytes : 0));
  if (queue.Is(SendQueue::kHasFlags)) [[unlikely]]
    packet.echo = FlagBytes(packet, offset);
  if (message.dispensable > 0) [[unlikely]]
    packet.acknowledged = uint64_t{message.dispensable} << 32 | (sequence - message.first_sequence);
  if (sequence + 1 == message.end_sequence) packet.flags = Packet::kLastOfMessage;
  if (SequenceDistance(sequence, queue.sent_end) < 0) [[unlikely]] {
    packet.flags |= Packet::kRetransmitted;
    MarkRepeated(queue_id, IsDataQueue(queue_id) ? DataBytes(packet) : 0);
  } else {
    queue.sent_end = sequence + 1;
    if (framing_.follows_segments) [[unlikely]]
      OnSegmentSent(queue_id);
  }
  // The timer belongs to the oldest unacknowledged packet.
  if (sequence == queue.unacknowledged) StartTimer(queue_id);
  const NicPort& port = ports_[queue.port];
  const int64_t wire_ps = packet.wire_bytes == FullPacketBytes()
                              ? port.full_packet_ps
                              : network_.TransmissionPs(port.wire, packet.wire_bytes);
  if (queue.Is(SendQueue::kPaced)) [[unlikely]]
    Pace(queue_id, packet.wire_bytes);
  network_.Inject(index);
  return wire_ps;
}

// Returns the flag bytes of a packet, `offset` into its message, which is not completely
// acknowledged.
uint16_t QueueTransport::FlagBytes(const Packet& packet, uint32_t offset) const {
  const MessageRing& messages = backlogs_[packet.flow].messages;
  const uint32_t position = FindMessage(messages, packet.sequence);
  const MessageSize size = {messages.at(position).bytes, messages.data_bytes_at(position)};
  return static_cast<uint16_t>(packet.payload_bytes -
                               size.Part(offset, offset + packet.payload_bytes).data_bytes);
}

void QueueTransport::MarkRepeated(QueueId queue_id, uint32_t payload_bytes) {
  ++counters_.retransmitted_packets;
  const SinkRef user = UserOf(queue_id);
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kHasLost) && !queue.Is(SendQueue::kHasRepeated)) {
    queue.Set(SendQueue::kHasRepeated);
    user.sink->OnRetransmission(user.number);
  }
  user.sink->OnPacketRepeated(user.number, payload_bytes);
}

RecoveryTimes QueueTransport::RecoveryOf(FlowId queue_pair, bool of_data) const {
  const QueueId queue_id = of_data ? DataQueueOf(queue_pair) : GrantQueueOf(queue_pair);
  const SendQueue& queue = send_queues_[queue_id];
  return queue.Is(SendQueue::kHasRepeated) && !queue.Is(SendQueue::kBroken)
             ? recoveries_.TimesUntil(queue_id, network_.engine().NowPs())
             : recoveries_.TimesOf(queue_id);
}

void QueueTransport::Pace(QueueId queue_id, uint32_t wire_bytes) {
  const int64_t now_ps = network_.engine().NowPs();
  KindOf(queue_id).control->OnSend(QueuePairOf(queue_id), now_ps, wire_bytes);
  ApplyLimits(queue_id);
  Pacer& pacer = pacers_[QueuePairOf(queue_id)];
  if (!send_queues_[queue_id].Is(SendQueue::kPaced)) return;
  pacer.next_send_ps =
      now_ps + (wire_bytes == FullPacketBytes() ? pacer.full_packet_ps
                                                : TransferTimePs(wire_bytes, pacer.rate_bps));
}

void QueueTransport::ApplyLimits(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  const NicKind& kind = kinds_[queue.nic_kind];
  const SendLimits& limits = kind.control->limits(QueuePairOf(queue_id));
  queue.window_packets = kind.window_packets;
  if (limits.window_bytes < kind.settings.window_bytes) {
    queue.window_packets =
        static_cast<uint32_t>(std::max<uint64_t>(1, limits.window_bytes / settings_.mtu_bytes));
  }
  if (framing_.follows_segments) [[unlikely]]
    OnLimits(queue_id);
  Pacer& pacer = pacers_[QueuePairOf(queue_id)];
  if (limits.rate_bps == pacer.rate_bps) return;
  pacer.rate_bps = limits.rate_bps;
  if (limits.rate_bps == SendLimits::kNoLimit) {
    queue.Clear(SendQueue::kPaced);
  } else {
    queue.Set(SendQueue::kPaced);
    pacer.full_packet_ps = TransferTimePs(FullPacketBytes(), limits.rate_bps);
  }
  NicOf(queue_id).NotifyRateChanged(
      {network_.engine().NowPs(), QueuePairOf(queue_id), limits.rate_bps});
}

void QueueTransport::NotifyControl(PacketId index, uint32_t acknowledged_packets) {
  const Packet& packet = network_.packet(index);
  const FlowId queue_pair = QueuePairOf(QueueId{packet.flow});
  const int64_t now_ps = network_.engine().NowPs();
  const SendQueue& queue = send_queues_[packet.flow];
  CongestionControl& control = *kinds_[queue.nic_kind].control;
  control.OnAcknowledged(queue_pair, {.now_ps = now_ps,
                                      .rtt_ps = now_ps - packet.timestamp_ps,
                                      .acknowledged_packets = acknowledged_packets,
                                      .marked_packets = packet.echo,
                                      .expected_sequence = packet.sequence,
                                      .next_sequence = queue.next_sequence,
                                      .telemetry = network_.telemetry().Of(index)});
  if (packet.kind == PacketKind::kNack) control.OnNack(queue_pair, now_ps);
  ApplyLimits(QueueId{packet.flow});
}

void QueueTransport::StartTimer(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  queue.timer_start_ps = network_.engine().NowPs();
  if (!queue.Is(SendQueue::kTimerPending)) ArmTimer(queue_id);
}

void QueueTransport::ScheduleTimer(QueueId queue_id, int64_t time_ps) {
  network_.engine().ScheduleFabric(time_ps, event_order::kQueueTimer, queue_id, queue_id);
}

void QueueTransport::ReportRecovery(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (!queue.Is(SendQueue::kHasLost)) return;
  if (SequenceDistance(queue.unacknowledged, backlogs_[queue_id].loss_end) < 0) return;
  // A loss that was repaired without a retransmission (a later ACK for a lost one) has cost
  // nothing.
  if (queue.Is(SendQueue::kHasRepeated)) {
    ClockRecovery(queue_id, &RecoveryTimes::retransmission_ps);
  }
  recoveries_.End(queue_id);
  queue.Clear(SendQueue::kHasLost);
  queue.Clear(SendQueue::kHasRepeated);
  if (HasUnrepairedLoss(QueuePairOf(queue_id))) return;
  const SinkRef user = UserOf(queue_id);
  user.sink->OnLossRecovered(user.number);
}

bool QueueTransport::HasUnrepairedLoss(FlowId queue_pair) const {
  const auto is_lost = [](const SendQueue& queue) {
    return queue.Is(SendQueue::kHasLost) && !queue.Is(SendQueue::kBroken);
  };
  return is_lost(send_queues_[DataQueueOf(queue_pair)]) ||
         is_lost(send_queues_[GrantQueueOf(queue_pair)]);
}

void QueueTransport::CompleteMessages(QueueId queue_id) {
  // The sink may post, and open queue pairs, which moves queues.
  while (!backlogs_[queue_id].messages.empty()) {
    SendQueue& queue = send_queues_[queue_id];
    if (SequenceDistance(queue.unacknowledged, queue.oldest_end) < 0) return;
    MessageRing& messages = backlogs_[queue_id].messages;
    if (history_ != nullptr) [[unlikely]]
      history_->Add(queue_id, messages.at(messages.first()));
    messages.PopFront();
    if (!messages.empty()) queue.oldest_end = messages.at(messages.first()).end_sequence;
    const SinkRef user = UserOf(queue_id);
    if (IsDataQueue(queue_id)) user.sink->OnCompleted(user.number);
  }
}

void QueueTransport::Deliver(PacketId index, uint64_t completed) {
  const QueueId queue_id{network_.packet(index).flow};
  if (payload_count_.follows_any()) [[unlikely]]
    payload_count_.Add(QueuePairOf(queue_id), network_.packet(index).payload_bytes);
  network_.Deliver(index);
  for (; completed > 0; --completed) {
    ReceiveQueue& queue = receive_queues_[queue_id];
    SIM_CHECK(queue.receives > 0,
              "a message without a receive: receiver-not-ready is not modelled");
    --queue.receives;
    const SinkRef user = UserOf(queue_id);
    user.sink->OnDelivered(user.number);
  }
}

void QueueTransport::Refuse(PacketId index, DropReason reason) {
  const Packet& packet = network_.packet(index);
  network_.Drop(index, reason,
                network_.paths().LinkOf({packet.path, packet.hop_count},
                                        static_cast<uint32_t>(packet.hop - 1)));
}

}  // namespace railyard
