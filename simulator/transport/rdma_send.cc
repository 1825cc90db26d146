// SPDX-License-Identifier: GPL-2.0-only
// The sending ends of queue pairs: turns on a port, packets, timers, what ACKs and NACKs do.
#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/rdma_transport.h"

namespace railyard {

// --- Messages ------------------------------------------------------------------------------------

void RdmaTransport::Post(uint32_t queue_pair, uint64_t bytes) {
  PostMessage(2 * queue_pair, bytes);
}

void RdmaTransport::PostClearToSend(uint32_t queue_pair) {
  PostMessage(2 * queue_pair + 1, kClearToSendBytes);
}

void RdmaTransport::PostMessage(uint32_t queue_id, uint64_t bytes) {
  SIM_CHECK(bytes < UINT32_MAX, "an RDMA message of 4 GiB or more");
  SendQueue& queue = send_queues_[queue_id];
  MessageRing& messages = backlogs_[queue_id].messages;
  const auto packets = static_cast<uint32_t>(
      std::max<uint64_t>(1, (bytes + settings_.mtu_bytes - 1) / settings_.mtu_bytes));
  const uint32_t first_sequence = queue.posted_end;
  queue.posted_end += packets;
  if (messages.empty()) queue.oldest_end = queue.posted_end;
  messages.PushBack({first_sequence, queue.posted_end, static_cast<uint32_t>(bytes)});
  Activate(queue_id);
}

void RdmaTransport::TakeMessage(SendQueue& queue, SendBacklog& backlog) {
  const MessageRing::Message& message = backlog.messages.at(backlog.next_message++);
  queue.message_first = message.first_sequence;
  queue.message_end = message.end_sequence;
  queue.message_bytes = message.bytes;
}

// Makes `sequence` the next to be sent. Precondition: no message before the oldest one still kept
// holds it.
void RdmaTransport::Seek(uint32_t queue_id, uint32_t sequence) {
  SendQueue& queue = send_queues_[queue_id];
  SendBacklog& backlog = backlogs_[queue_id];
  queue.next_sequence = sequence;
  queue.message_end = sequence;
  backlog.next_message = backlog.messages.first();
  while (backlog.next_message != backlog.messages.end() &&
         SequenceDistance(backlog.messages.at(backlog.next_message).end_sequence, sequence) <= 0) {
    ++backlog.next_message;
  }
  if (backlog.next_message != backlog.messages.end()) TakeMessage(queue, backlog);
}

// --- Turns ---------------------------------------------------------------------------------------

void RdmaTransport::Activate(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kActive) || !MaySend(queue)) return;
  queue.Set(SendQueue::kActive);
  NicPort& port = ports_[queue.port];
  Append(port, queue_id);
  if (!port.event_pending) ScheduleServe(queue.port, port.free_ps);
}

void RdmaTransport::Append(NicPort& port, uint32_t queue_id) {
  send_queues_[queue_id].next_active = SendQueue::kNone;
  if (port.first_active == SendQueue::kNone) {
    port.first_active = queue_id;
  } else {
    send_queues_[port.last_active].next_active = queue_id;
  }
  port.last_active = queue_id;
}

void RdmaTransport::ScheduleServe(uint32_t port_id, int64_t time_ps) {
  ports_[port_id].event_pending = true;
  const uint32_t event_id = first_port_ + port_id;
  network_.engine().ScheduleFabric(std::max(time_ps, network_.engine().NowPs()), EventClass::kPort,
                                   event_id, event_id);
}

void RdmaTransport::Serve(uint32_t port_id) {
  NicPort& port = ports_[port_id];
  const int64_t now_ps = network_.engine().NowPs();
  // ACKs take their share of the wire as well: let what was read ahead drain first.
  const int64_t backlog_ps = network_.BusyUntilPs(port.wire) - now_ps;
  if (backlog_ps > port.backlog_max_ps) {
    port.free_ps = now_ps + backlog_ps - port.backlog_max_ps;
    ScheduleServe(port_id, port.free_ps);
    return;
  }
  const uint32_t queue_id = port.first_active;
  SendQueue& queue = send_queues_[queue_id];
  port.first_active = queue.next_active;
  // A queue may have lost its right to send, or moved to another port, while it waited for its
  // turn.
  const bool is_here = queue.port == port_id;
  for (uint32_t left = settings_.burst_packets; left > 0 && is_here && MaySend(queue); --left) {
    port.free_ps = std::max(port.free_ps, now_ps) + SendPacket(queue_id);
  }
  if (is_here && MaySend(queue)) {
    Append(port, queue_id);
  } else {
    queue.Clear(SendQueue::kActive);
    if (!is_here) Activate(queue_id);
  }
  port.event_pending = false;
  if (port.first_active != SendQueue::kNone) ScheduleServe(port_id, port.free_ps);
}

// --- Packets -------------------------------------------------------------------------------------

int64_t RdmaTransport::SendPacket(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.next_sequence == queue.message_end) TakeMessage(queue, backlogs_[queue_id]);
  const uint32_t sequence = queue.next_sequence++;
  const uint32_t offset = (sequence - queue.message_first) * settings_.mtu_bytes;

  const uint32_t index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.timestamp_ps = network_.engine().NowPs();
  packet.flow = queue_id;
  packet.sequence = sequence;
  packet.path = queue.first_link;
  packet.hop_count = queue.hop_count;
  packet.kind = IsData(queue_id) ? PacketKind::kRdmaWrite : PacketKind::kClearToSend;
  packet.payload_bytes =
      static_cast<uint16_t>(std::min(queue.message_bytes - offset, settings_.mtu_bytes));
  packet.wire_bytes = static_cast<uint16_t>(packet.payload_bytes + kRoceHeaderBytes +
                                            (offset == 0 ? kRethBytes : 0));
  if (queue.next_sequence == queue.message_end) packet.flags = Packet::kLastOfMessage;
  if (SequenceDistance(sequence, queue.sent_end) < 0) [[unlikely]] {
    packet.flags |= Packet::kRetransmitted;
    MarkRepeated(queue_id);
  } else {
    queue.sent_end = queue.next_sequence;
  }
  // The timer is of the oldest unacknowledged packet.
  if (sequence == queue.unacknowledged) StartTimer(queue_id);
  const NicPort& port = ports_[queue.port];
  const int64_t wire_ps = packet.wire_bytes == settings_.mtu_bytes + kRoceHeaderBytes
                              ? port.full_packet_ps
                              : network_.TransmissionPs(port.wire, packet.wire_bytes);
  network_.Inject(index);
  return wire_ps;
}

void RdmaTransport::MarkRepeated(uint32_t queue_id) {
  ++counters_.retransmitted_packets;
  SendQueue& queue = send_queues_[queue_id];
  if (!queue.Is(SendQueue::kHasLost) || queue.Is(SendQueue::kHasRepeated)) return;
  queue.Set(SendQueue::kHasRepeated);
  listener_.OnRetransmission(PairOf(queue_id).connection);
}

// --- Timer ---------------------------------------------------------------------------------------

void RdmaTransport::StartTimer(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  queue.timer_start_ps = network_.engine().NowPs();
  if (queue.Is(SendQueue::kTimerPending)) return;
  queue.Set(SendQueue::kTimerPending);
  network_.engine().ScheduleFabric(queue.timer_start_ps + settings_.LocalAckTimeoutPs(),
                                   EventClass::kTimer, queue_id, queue_id);
}

void RdmaTransport::OnTimer(uint32_t queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  queue.Clear(SendQueue::kTimerPending);
  if (queue.Is(SendQueue::kBroken) || queue.unacknowledged == queue.sent_end) return;
  const int64_t deadline_ps = queue.timer_start_ps + settings_.LocalAckTimeoutPs();
  if (deadline_ps > network_.engine().NowPs()) {
    queue.Set(SendQueue::kTimerPending);
    network_.engine().ScheduleFabric(deadline_ps, EventClass::kTimer, queue_id, queue_id);
    return;
  }
  ++counters_.timeouts;
  if (queue.retries == settings_.ib_retry_cnt) {
    Break(queue_id, fmt::format("IBV_WC_RETRY_EXC_ERR(12) on {}", Describe(queue_id / 2)));
    return;
  }
  ++queue.retries;
  // Restarted here as well, for the port may be kept from sending for long.
  StartTimer(queue_id);
  GoBack(queue_id, queue.unacknowledged);
}

void RdmaTransport::GoBack(uint32_t queue_id, uint32_t sequence) {
  Seek(queue_id, sequence);
  Activate(queue_id);
}

// --- Acknowledgements ----------------------------------------------------------------------------

void RdmaTransport::OnAcknowledgement(uint32_t queue_id, uint32_t expected, bool is_nack) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kBroken)) return;
  if (SequenceDistance(expected, queue.sent_end) > 0 ||
      SequenceDistance(expected, queue.unacknowledged) < 0) {
    return;  // older than what is known
  }
  if (expected != queue.unacknowledged) {
    queue.unacknowledged = expected;
    queue.retries = 0;
    queue.timer_start_ps = network_.engine().NowPs();
    if (SequenceDistance(queue.next_sequence, expected) < 0) Seek(queue_id, expected);
    if (queue.Is(SendQueue::kHasLost) &&
        SequenceDistance(expected, backlogs_[queue_id].loss_end) >= 0) {
      queue.Clear(SendQueue::kHasLost);
      queue.Clear(SendQueue::kHasRepeated);
      listener_.OnLossRecovered(PairOf(queue_id).connection);
    }
  } else if (is_nack && queue.retries++ == settings_.ib_retry_cnt) {
    // No progress since the last request to repeat: the specification counts it as a retry.
    Break(queue_id, fmt::format("IBV_WC_RETRY_EXC_ERR(12) on {}", Describe(queue_id / 2)));
    return;
  }
  if (is_nack) GoBack(queue_id, expected);
  if (SequenceDistance(expected, queue.oldest_end) >= 0) CompleteMessages(queue_id);
  Activate(queue_id);
}

void RdmaTransport::CompleteMessages(uint32_t queue_id) {
  // The listener may post, and open queue pairs, which moves queues.
  while (!backlogs_[queue_id].messages.empty()) {
    SendQueue& queue = send_queues_[queue_id];
    if (SequenceDistance(queue.unacknowledged, queue.oldest_end) < 0) return;
    MessageRing& messages = backlogs_[queue_id].messages;
    messages.PopFront();
    if (!messages.empty()) queue.oldest_end = messages.at(messages.first()).end_sequence;
    if (IsData(queue_id)) listener_.OnSendCompleted(PairOf(queue_id).connection);
  }
}

}  // namespace railyard
