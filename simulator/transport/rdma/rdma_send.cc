// SPDX-License-Identifier: GPL-2.0-only
// Sending ends of queue pairs: timers, retransmission, and the effects of ACKs, NACKs and CNPs.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/transport/rdma/rdma_transport.h"

namespace railyard {

void RdmaTransport::Grant(FlowId queue_pair, bool tells_sender) {
  PostReceives(queue_pair, 1);
  if (tells_sender) PostToSender(queue_pair, kClearToSendBytes);
}

void RdmaTransport::PostToSender(FlowId queue_pair, uint32_t bytes) {
  PostMessage(GrantQueueOf(queue_pair), MessageSize::OfData(bytes), 0);
}

void RdmaTransport::SendUnreliable(FlowId queue_pair, bool to_receiver, uint32_t immediate) {
  const QueueId queue_id = to_receiver ? DataQueueOf(queue_pair) : GrantQueueOf(queue_pair);
  // The packet takes the path of the ACKs of the opposite direction, from NIC to NIC.
  const PathRef path = receive_queues_[OtherQueueOf(queue_id)].ack_path();
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = queue_id;
  packet.sequence = immediate;
  packet.path = path.first;
  packet.hop_count = path.hop_count;
  packet.kind = PacketKind::kUnreliableSend;
  packet.wire_bytes = static_cast<uint16_t>(framing_.header_bytes + kImmediateBytes);
  network_.Inject(index);
}

int64_t RdmaTransport::SendRepair(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  Repair& repair = repairs_[queue_id];
  const uint32_t sequence =
      queue.unacknowledged + static_cast<uint32_t>(std::countr_zero(repair.repeat));
  repair.repeat &= repair.repeat - 1;
  if (repair.repeat == 0) queue.Clear(SendQueue::kHasRepairs);
  return SendAgain(queue_id, sequence);
}

void RdmaTransport::OnCnp(QueueId queue_id) {
  KindOf(queue_id).control->OnCnp(QueuePairOf(queue_id), network_.engine().NowPs());
  ApplyLimits(queue_id);
}

void RdmaTransport::ArmTimer(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  queue.Set(SendQueue::kTimerPending);
  ScheduleTimer(queue_id, queue.timer_start_ps + KindOf(queue_id).settings.LocalAckTimeoutPs());
}

void RdmaTransport::OnTimer(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  queue.Clear(SendQueue::kTimerPending);
  if (queue.Is(SendQueue::kBroken) || queue.unacknowledged == queue.sent_end) return;
  const int64_t now_ps = network_.engine().NowPs();
  const NicKind& kind = kinds_[queue.nic_kind];
  const int64_t deadline_ps = queue.timer_start_ps + kind.settings.LocalAckTimeoutPs();
  if (deadline_ps > now_ps) {
    queue.Set(SendQueue::kTimerPending);
    ScheduleTimer(queue_id, deadline_ps);
    return;
  }
  if (queue.next_sequence == queue.unacknowledged && PacedUntilPs(queue, queue_id) > now_ps) {
    // The oldest packet waits for its time to be sent again. Its timer has not begun.
    queue.timer_start_ps = PacedUntilPs(queue, queue_id);
    ArmTimer(queue_id);
    return;
  }
  ++counters_.timeouts;
  ClockRecovery(queue_id, &RecoveryTimes::timeout_ps);
  NicOf(queue_id).NotifyTimeout({now_ps, QueuePairOf(queue_id)});
  if (queue.retries == kind.settings.ib_retry_cnt) {
    Break(queue_id,
          {.is_unanswered = true,
           .why = fmt::format("{} on {}", kRetryExceeded, Describe(QueuePairOf(queue_id)))});
    return;
  }
  ++queue.retries;
  if (IsDataQueue(queue_id)) {
    kind.control->OnTimeout(QueuePairOf(queue_id), now_ps);
    ApplyLimits(queue_id);
  }
  // The timer is restarted here as well, because the port may be blocked for a long time.
  StartTimer(queue_id);
  GoBack(queue_id, queue.unacknowledged);
}

void RdmaTransport::GoBack(QueueId queue_id, uint32_t sequence) {
  Seek(queue_id, sequence);
  if (settings_.recovery == Recovery::kSelectiveRepeat) {
    repairs_[queue_id] = {};
    send_queues_[queue_id].Clear(SendQueue::kHasRepairs);
  }
  Activate(queue_id);
}

// Handles the bitmap of a NACK, which counts from the packet after the oldest unacknowledged one.
// Packets missing before its last bit are sent again, once, unless they are scheduled already.
void RdmaTransport::RepeatMissing(QueueId queue_id, uint64_t beyond) {
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

// Shifts the bitmap after the oldest unacknowledged packet has advanced by `count`.
void RdmaTransport::AdvanceRepair(QueueId queue_id, uint32_t count) {
  Repair& repair = repairs_[queue_id];
  repair.repeat = count >= 64 ? 0 : repair.repeat >> count;
  repair.requested -= std::min(repair.requested, count);
  if (repair.repeat == 0) send_queues_[queue_id].Clear(SendQueue::kHasRepairs);
}

void RdmaTransport::OnAcknowledgement(PacketId index) {
  const Packet ack = network_.packet(index);
  const QueueId queue_id{ack.flow};
  const uint32_t expected = ack.sequence;
  const bool is_nack = ack.kind == PacketKind::kNack;
  SendQueue& queue = send_queues_[queue_id];
  const uint32_t progress = expected - queue.unacknowledged;
  // The ACK is stale if its queue pair is broken or if it is older than what is known.
  const bool is_stale = queue.Is(SendQueue::kBroken) ||
                        SequenceDistance(expected, queue.sent_end) > 0 ||
                        SequenceDistance(expected, queue.unacknowledged) < 0;
  if (!is_stale && IsDataQueue(queue_id) && (KindOf(queue_id).needs.acknowledgements || is_nack)) {
    NotifyControl(index, progress);
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
  } else if (is_nack && !is_selective &&
             queue.retries++ == KindOf(queue_id).settings.ib_retry_cnt) {
    // There was no progress since the last request for retransmission, which the specification
    // counts as a retry. With selective repeat the request may be for another gap.
    Break(queue_id,
          {.is_unanswered = true,
           .why = fmt::format("{} on {}", kRetryExceeded, Describe(QueuePairOf(queue_id)))});
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

}  // namespace railyard
