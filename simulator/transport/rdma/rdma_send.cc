// SPDX-License-Identifier: GPL-2.0-only
// The sending ends of queue pairs: messages, packets, timers, what ACKs, NACKs and CNPs do.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/rdma/rdma_transport.h"

namespace railyard {

// --- Messages ------------------------------------------------------------------------------------

void RdmaTransport::Post(uint32_t queue_pair, const MessageSize& size, uint32_t tolerance_ppm) {
  PostMessage(2 * queue_pair, size, tolerance_ppm);
}

void RdmaTransport::PostReceives(uint32_t queue_pair, uint32_t count) {
  receive_queues_[size_t{2} * queue_pair].receives += count;
}

void RdmaTransport::PostClearToSend(uint32_t queue_pair) {
  PostReceives(queue_pair, 1);
  PostToSender(queue_pair, kClearToSendBytes);
}

void RdmaTransport::PostToSender(uint32_t queue_pair, uint32_t bytes) {
  PostMessage(2 * queue_pair + 1, MessageSize::OfData(bytes), 0);
}

void RdmaTransport::SendUnreliable(uint32_t queue_pair, bool to_receiver, uint32_t immediate) {
  const uint32_t queue_id = to_receiver ? 2 * queue_pair : 2 * queue_pair + 1;
  // From NIC to NIC, as the ACKs of what goes the other way.
  const PathRef path = receive_queues_[to_receiver ? queue_id + 1 : queue_id - 1].ack_path();
  const uint32_t index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = queue_id;
  packet.sequence = immediate;
  packet.path = path.first;
  packet.hop_count = path.hop_count;
  packet.kind = PacketKind::kUnreliableSend;
  packet.wire_bytes = static_cast<uint16_t>(header_bytes_ + kImmediateBytes);
  network_.Inject(index);
}

void RdmaTransport::PostMessage(uint32_t queue_id, const MessageSize& size,
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

// Makes the next message the one that is being sent.
void RdmaTransport::TakeMessage(SendQueue& queue, SendBacklog& backlog) {
  queue.message = backlog.messages.at(backlog.next_message++);
}

// Position of the oldest message that ends beyond `sequence`, or the end.
uint32_t RdmaTransport::FindMessage(const MessageRing& messages, uint32_t sequence) {
  uint32_t position = messages.first();
  while (position != messages.end() &&
         SequenceDistance(messages.at(position).end_sequence, sequence) <= 0) {
    ++position;
  }
  return position;
}

// Makes `sequence` the next to be sent.
void RdmaTransport::Seek(uint32_t queue_id, uint32_t sequence) {
  SendQueue& queue = send_queues_[queue_id];
  SendBacklog& backlog = backlogs_[queue_id];
  queue.next_sequence = sequence;
  queue.message.end_sequence = sequence;
  backlog.next_message = FindMessage(backlog.messages, sequence);
  if (backlog.next_message != backlog.messages.end()) TakeMessage(queue, backlog);
}

// --- Packets -------------------------------------------------------------------------------------

int64_t RdmaTransport::SendPacket(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kHasRepairs)) [[unlikely]]
    return SendRepair(queue_id);
  if (queue.next_sequence == queue.message.end_sequence) {
    TakeMessage(queue, backlogs_[queue_id]);
  }
  return SendPacketOf(queue_id, queue.next_sequence++, queue.message);
}

int64_t RdmaTransport::SendRepair(uint32_t queue_id) {
  if (settings_.is_tcp) {
    const uint32_t lost = TakeLostSegment(queue_id);
    const MessageRing& messages = backlogs_[queue_id].messages;
    return SendPacketOf(queue_id, lost, messages.at(FindMessage(messages, lost)));
  }
  SendQueue& queue = send_queues_[queue_id];
  Repair& repair = repairs_[queue_id];
  const uint32_t sequence =
      queue.unacknowledged + static_cast<uint32_t>(std::countr_zero(repair.repeat));
  repair.repeat &= repair.repeat - 1;
  if (repair.repeat == 0) queue.Clear(SendQueue::kHasRepairs);
  const MessageRing& messages = backlogs_[queue_id].messages;
  return SendPacketOf(queue_id, sequence, messages.at(FindMessage(messages, sequence)));
}

// The time the packet takes on the port's wire.
inline int64_t RdmaTransport::SendPacketOf(uint32_t queue_id, uint32_t sequence,
                                           const MessageRing::Message& message) {
  SendQueue& queue = send_queues_[queue_id];
  const uint32_t offset = (sequence - message.first_sequence) * settings_.mtu_bytes;
  const uint32_t index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.timestamp_ps = network_.engine().NowPs();
  packet.flow = queue_id;
  packet.sequence = sequence;
  packet.path = queue.first_link;
  packet.hop_count = queue.hop_count;
  packet.kind = IsData(queue_id) ? PacketKind::kRdmaWrite : PacketKind::kClearToSend;
  packet.payload_bytes =
      static_cast<uint16_t>(std::min(message.bytes - offset, settings_.mtu_bytes));
  packet.wire_bytes = static_cast<uint16_t>(packet.payload_bytes + header_bytes_ +
                                            (offset == 0 && !settings_.is_tcp ? kRethBytes : 0));
  if (queue.Is(SendQueue::kHasFlags)) [[unlikely]]
    packet.echo = FlagBytes(queue_id, sequence, offset, packet.payload_bytes);
  if (message.dispensable > 0) [[unlikely]]
    packet.acknowledged = uint64_t{message.dispensable} << 32 | (sequence - message.first_sequence);
  if (sequence + 1 == message.end_sequence) packet.flags = Packet::kLastOfMessage;
  if (SequenceDistance(sequence, queue.sent_end) < 0) [[unlikely]] {
    packet.flags |= Packet::kRetransmitted;
    MarkRepeated(queue_id, IsData(queue_id) ? DataBytes(packet) : 0);
  } else {
    queue.sent_end = sequence + 1;
    if (settings_.is_tcp) [[unlikely]]
      tcp_senders_[queue_id].scoreboard.OnSend();
  }
  // The timer is of the oldest unacknowledged packet.
  if (sequence == queue.unacknowledged) StartTimer(queue_id);
  const NicPort& port = ports_[queue.port];
  const int64_t wire_ps = packet.wire_bytes == settings_.mtu_bytes + header_bytes_
                              ? port.full_packet_ps
                              : network_.TransmissionPs(port.wire, packet.wire_bytes);
  if (queue.Is(SendQueue::kPaced)) [[unlikely]]
    Pace(queue_id, packet.wire_bytes);
  network_.Inject(index);
  return wire_ps;
}

// Of a packet of a message that is not acknowledged as a whole.
uint16_t RdmaTransport::FlagBytes(uint32_t queue_id, uint32_t sequence, uint32_t offset,
                                  uint32_t payload_bytes) const {
  const MessageRing& messages = backlogs_[queue_id].messages;
  const uint32_t position = FindMessage(messages, sequence);
  const MessageSize size = {messages.at(position).bytes, messages.data_bytes_at(position)};
  return static_cast<uint16_t>(payload_bytes -
                               size.Part(offset, offset + payload_bytes).data_bytes);
}

void RdmaTransport::MarkRepeated(uint32_t queue_id, uint32_t payload_bytes) {
  ++counters_.retransmitted_packets;
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kHasLost) && !queue.Is(SendQueue::kHasRepeated)) {
    queue.Set(SendQueue::kHasRepeated);
    listener_.OnRetransmission(PairOf(queue_id).connection);
  }
  listener_.OnPacketRepeated(PairOf(queue_id).connection, payload_bytes);
}

// --- Recovery, by its parts
// ---------------------------------------------------------------------

void RdmaTransport::ClockRecovery(uint32_t queue_id, int64_t RecoveryTimes::*part) {
  RecoveryClock& recovery = recoveries_[queue_id];
  if (recovery.since_ps < 0) return;
  const int64_t now_ps = network_.engine().NowPs();
  recovery.times.*part += now_ps - recovery.since_ps;
  recovery.since_ps = now_ps;
}

RecoveryTimes RdmaTransport::RecoveryOf(uint32_t queue_pair, bool of_data) const {
  const uint32_t queue_id = of_data ? 2 * queue_pair : 2 * queue_pair + 1;
  const RecoveryClock& recovery = recoveries_[queue_id];
  RecoveryTimes times = recovery.times;
  const SendQueue& queue = send_queues_[queue_id];
  if (recovery.since_ps >= 0 && queue.Is(SendQueue::kHasRepeated) &&
      !queue.Is(SendQueue::kBroken)) {
    times.retransmission_ps += network_.engine().NowPs() - recovery.since_ps;
  }
  return times;
}

// --- Congestion control --------------------------------------------------------------------------

void RdmaTransport::Pace(uint32_t queue_id, uint32_t wire_bytes) {
  const int64_t now_ps = network_.engine().NowPs();
  control_->OnSend(queue_id / 2, now_ps, wire_bytes);
  ApplyLimits(queue_id);
  Pacer& pacer = pacers_[queue_id / 2];
  if (!send_queues_[queue_id].Is(SendQueue::kPaced)) return;
  pacer.next_send_ps = now_ps + (wire_bytes == settings_.mtu_bytes + header_bytes_
                                     ? pacer.full_packet_ps
                                     : TransferTimePs(wire_bytes, pacer.rate_bps));
}

void RdmaTransport::ApplyLimits(uint32_t queue_id) {
  const SendLimits& limits = control_->limits(queue_id / 2);
  SendQueue& queue = send_queues_[queue_id];
  queue.window_packets = window_packets_;
  if (limits.window_bytes < settings_.window_bytes) {
    queue.window_packets =
        static_cast<uint32_t>(std::max<uint64_t>(1, limits.window_bytes / settings_.mtu_bytes));
  }
  if (settings_.is_tcp) [[unlikely]] {
    tcp_senders_[queue_id].congestion_packets = queue.window_packets;
    SetTcpWindow(queue_id);
  }
  Pacer& pacer = pacers_[queue_id / 2];
  if (limits.rate_bps == pacer.rate_bps) return;
  pacer.rate_bps = limits.rate_bps;
  if (limits.rate_bps == SendLimits::kNoLimit) {
    queue.Clear(SendQueue::kPaced);
  } else {
    queue.Set(SendQueue::kPaced);
    pacer.full_packet_ps = TransferTimePs(settings_.mtu_bytes + header_bytes_, limits.rate_bps);
  }
  nic_->NotifyRateChanged({network_.engine().NowPs(), queue_id / 2, limits.rate_bps});
}

void RdmaTransport::OnCnp(uint32_t queue_id) {
  control_->OnCnp(queue_id / 2, network_.engine().NowPs());
  ApplyLimits(queue_id);
}

void RdmaTransport::TellControl(uint32_t index, uint32_t acknowledged_packets) {
  const Packet& packet = network_.packet(index);
  const uint32_t queue_pair = packet.flow / 2;
  const int64_t now_ps = network_.engine().NowPs();
  control_->OnAcknowledged(queue_pair, {.now_ps = now_ps,
                                        .rtt_ps = now_ps - packet.timestamp_ps,
                                        .acknowledged_packets = acknowledged_packets,
                                        .marked_packets = packet.echo,
                                        .expected_sequence = packet.sequence,
                                        .next_sequence = send_queues_[packet.flow].next_sequence,
                                        .telemetry = network_.Telemetry(index)});
  if (packet.kind == PacketKind::kNack) control_->OnNack(queue_pair, now_ps);
  ApplyLimits(packet.flow);
}

// --- Timer ---------------------------------------------------------------------------------------

void RdmaTransport::StartTimer(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  queue.timer_start_ps = network_.engine().NowPs();
  if (settings_.is_tcp) [[unlikely]] {
    ArmTcpTimer(queue_id);
    return;
  }
  if (queue.Is(SendQueue::kTimerPending)) return;
  queue.Set(SendQueue::kTimerPending);
  network_.engine().ScheduleFabric(queue.timer_start_ps + settings_.LocalAckTimeoutPs(),
                                   EventClass::kTimer, queue_id, queue_id);
}

void RdmaTransport::OnTimer(uint32_t queue_id) {
  if (settings_.is_tcp) {
    OnTcpTimer(queue_id);
    return;
  }
  SendQueue& queue = send_queues_[queue_id];
  queue.Clear(SendQueue::kTimerPending);
  if (queue.Is(SendQueue::kBroken) || queue.unacknowledged == queue.sent_end) return;
  const int64_t now_ps = network_.engine().NowPs();
  const int64_t deadline_ps = queue.timer_start_ps + settings_.LocalAckTimeoutPs();
  if (deadline_ps > now_ps) {
    queue.Set(SendQueue::kTimerPending);
    network_.engine().ScheduleFabric(deadline_ps, EventClass::kTimer, queue_id, queue_id);
    return;
  }
  ++counters_.timeouts;
  ClockRecovery(queue_id, &RecoveryTimes::timeout_ps);
  nic_->NotifyTimeout({now_ps, queue_id / 2});
  if (queue.retries == settings_.ib_retry_cnt) {
    Break(queue_id, fmt::format("{} on {}", kRetryExceeded, Describe(queue_id / 2)));
    return;
  }
  ++queue.retries;
  if (IsData(queue_id)) {
    control_->OnTimeout(queue_id / 2, now_ps);
    ApplyLimits(queue_id);
  }
  // Restarted here as well, for the port may be kept from sending for long.
  StartTimer(queue_id);
  GoBack(queue_id, queue.unacknowledged);
}

// --- Repetition ----------------------------------------------------------------------------------

void RdmaTransport::GoBack(uint32_t queue_id, uint32_t sequence) {
  Seek(queue_id, sequence);
  if (settings_.recovery == Recovery::kSelectiveRepeat) {
    repairs_[queue_id] = {};
    send_queues_[queue_id].Clear(SendQueue::kHasRepairs);
  }
  Activate(queue_id);
}

// The receiver has what `beyond` says, counted from the packet after the oldest unacknowledged:
// what is missing before its last is sent again, once, unless it is to be sent anyway.
void RdmaTransport::RepeatMissing(uint32_t queue_id, uint64_t beyond) {
  SendQueue& queue = send_queues_[queue_id];
  Repair& repair = repairs_[queue_id];
  const auto last = static_cast<uint32_t>(std::bit_width(beyond));  // so far beyond the oldest
  if (last <= settings_.reorder_tolerance_packets) return;
  const uint32_t lost_end = std::min(last - settings_.reorder_tolerance_packets,
                                     queue.next_sequence - queue.unacknowledged);
  if (lost_end <= repair.requested) return;
  const uint64_t missing = ~(beyond << 1);  // bit i: unacknowledged + i
  const uint64_t is_new = (UINT64_MAX >> (64 - lost_end)) & (UINT64_MAX << repair.requested);
  repair.repeat |= missing & is_new;
  repair.requested = lost_end;
  if (repair.repeat != 0) queue.Set(SendQueue::kHasRepairs);
  Activate(queue_id);
}

// The oldest unacknowledged packet is now one `count` further on.
void RdmaTransport::AdvanceRepair(uint32_t queue_id, uint32_t count) {
  Repair& repair = repairs_[queue_id];
  repair.repeat = count >= 64 ? 0 : repair.repeat >> count;
  repair.requested -= std::min(repair.requested, count);
  if (repair.repeat == 0) send_queues_[queue_id].Clear(SendQueue::kHasRepairs);
}

// --- Acknowledgements ----------------------------------------------------------------------------

void RdmaTransport::OnAcknowledgement(uint32_t index) {
  if (settings_.is_tcp) [[unlikely]] {
    OnTcpAcknowledgement(index);
    return;
  }
  const Packet ack = network_.packet(index);
  const uint32_t queue_id = ack.flow;
  const uint32_t expected = ack.sequence;
  const bool is_nack = ack.kind == PacketKind::kNack;
  SendQueue& queue = send_queues_[queue_id];
  const uint32_t progress = expected - queue.unacknowledged;
  // Of a broken queue pair, or older than what is known.
  const bool is_stale = queue.Is(SendQueue::kBroken) ||
                        SequenceDistance(expected, queue.sent_end) > 0 ||
                        SequenceDistance(expected, queue.unacknowledged) < 0;
  if (!is_stale && IsData(queue_id) && (control_needs_.acknowledgements || is_nack)) {
    TellControl(index, progress);
  }
  network_.FreePacket(index);
  if (is_stale) return;
  const bool is_selective = settings_.recovery == Recovery::kSelectiveRepeat;
  if (progress != 0) {
    queue.unacknowledged = expected;
    queue.retries = 0;
    queue.timer_start_ps = network_.engine().NowPs();
    if (is_selective) AdvanceRepair(queue_id, progress);
    if (SequenceDistance(queue.next_sequence, expected) < 0) Seek(queue_id, expected);
    if (queue.Is(SendQueue::kHasLost)) [[unlikely]]
      ReportRecovery(queue_id);
  } else if (is_nack && !is_selective && queue.retries++ == settings_.ib_retry_cnt) {
    // No progress since the last request to repeat: the specification counts it as a retry. With
    // selective repeat a request may be for another gap.
    Break(queue_id, fmt::format("{} on {}", kRetryExceeded, Describe(queue_id / 2)));
    return;
  }
  if (is_nack) ClockRecovery(queue_id, &RecoveryTimes::retransmission_ps);
  if (is_nack && is_selective && ack.acknowledged != 0) {
    RepeatMissing(queue_id, ack.acknowledged);
  } else if (is_nack) {
    GoBack(queue_id, expected);
  }
  if (SequenceDistance(expected, queue.oldest_end) >= 0) CompleteMessages(queue_id);
  Activate(queue_id);
}

void RdmaTransport::ReportRecovery(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (!queue.Is(SendQueue::kHasLost)) return;
  if (SequenceDistance(queue.unacknowledged, backlogs_[queue_id].loss_end) < 0) return;
  // What others made good (a later ACK for a lost one) has cost nothing.
  if (queue.Is(SendQueue::kHasRepeated)) {
    ClockRecovery(queue_id, &RecoveryTimes::retransmission_ps);
  }
  recoveries_[queue_id].since_ps = -1;
  queue.Clear(SendQueue::kHasLost);
  queue.Clear(SendQueue::kHasRepeated);
  listener_.OnLossRecovered(PairOf(queue_id).connection);
}

void RdmaTransport::CompleteMessages(uint32_t queue_id) {
  // The listener may post, and open queue pairs, which moves queues.
  while (!backlogs_[queue_id].messages.empty()) {
    SendQueue& queue = send_queues_[queue_id];
    if (SequenceDistance(queue.unacknowledged, queue.oldest_end) < 0) return;
    MessageRing& messages = backlogs_[queue_id].messages;
    messages.PopFront();
    if (!messages.empty()) queue.oldest_end = messages.at(messages.first()).end_sequence;
    if (IsData(queue_id)) listener_.OnCompleted(PairOf(queue_id).connection);
  }
}

}  // namespace railyard
