// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/tcp/tcp_transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/contract/sequence_distance.h"

namespace railyard {

TcpTransport::TcpTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const NicSettings& settings, std::span<const ns3::Ptr<Nic>> nics)
    : QueueTransport(
          graph, network, routing, settings, {}, nics,
          {.header_bytes = kTcpHeaderBytes, .is_answered_by_host = true, .follows_segments = true}),
      window_packets_(settings.WindowPackets()) {}

void TcpTransport::AddQueueState() {
  TcpSender& sender = senders_.emplace_back();
  sender.offered_end = window_packets_;
  sender.congestion_packets = window_packets_;
  receivers_.emplace_back().offered_end = window_packets_;
}

void TcpTransport::OnOpened(FlowId stream, int64_t base_rtt_ps) {
  senders_[DataQueueOf(stream)].timeout.OnRoundTrip(base_rtt_ps);
}

// --- Sending end ---------------------------------------------------------------------------------

// Sets how far the stream may send: the segments that the congestion window allows beyond those
// that arrived or are lost, as far as the receiver has room. Lost segments are sent first.
void TcpTransport::SetWindow(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  const TcpSender& tcp = senders_[queue_id];
  const TcpScoreboard& segments = tcp.scoreboard;
  queue.window_packets = std::min(tcp.congestion_packets + segments.sacked() + segments.lost(),
                                  tcp.offered_end - queue.unacknowledged);
  if (segments.lost() > 0 && segments.InFlight() < tcp.congestion_packets) {
    queue.Set(SendQueue::kHasRepairs);
  } else {
    queue.Clear(SendQueue::kHasRepairs);
  }
}

void TcpTransport::OnLimits(QueueId queue_id) {
  senders_[queue_id].congestion_packets = send_queues_[queue_id].window_packets;
  SetWindow(queue_id);
}

int64_t TcpTransport::SendRepair(QueueId queue_id) {
  return SendAgain(queue_id, TakeLostSegment(queue_id));
}

uint32_t TcpTransport::TakeLostSegment(QueueId queue_id) {
  const uint32_t sequence =
      send_queues_[queue_id].unacknowledged + senders_[queue_id].scoreboard.TakeLost();
  SetWindow(queue_id);
  return sequence;
}

void TcpTransport::OnAcknowledgement(PacketId index) {
  const Packet ack = network_.packet(index);
  const QueueId queue_id{ack.flow};
  SendQueue& queue = send_queues_[queue_id];
  TcpSender& tcp = senders_[queue_id];
  const uint32_t progress = ack.sequence - queue.unacknowledged;
  const bool is_stale =
      queue.Is(SendQueue::kBroken) || SequenceDistance(ack.sequence, queue.unacknowledged) < 0;
  if (is_stale) {
    network_.FreePacket(index);
    return;
  }
  const int64_t now_ps = network_.engine().NowPs();
  const TcpAckWord word = TcpAckWord::Unpack(ack.acknowledged);
  if (SequenceDistance(word.offered_end, tcp.offered_end) > 0) {
    tcp.offered_end = word.offered_end;
    if (queue.unacknowledged == queue.sent_end) tcp.timeout.EndBackOff();  // probes found room
  }
  tcp.scoreboard.OnAcknowledged(progress);
  tcp.scoreboard.OnSelective(word.block_begin, word.block_end);
  if (progress != 0) {
    tcp.timeout.OnRoundTrip(now_ps - ack.timestamp_ps);
    tcp.timeout.EndBackOff();
    tcp.first_repeat_ps = -1;
    queue.retries = 0;
    queue.unacknowledged = ack.sequence;
    if (SequenceDistance(ack.sequence, tcp.recovery_end) >= 0) tcp.in_recovery = false;
    StartTimer(queue_id);
    ReportRecovery(queue_id);
  }
  NotifyControl(index, progress);
  network_.FreePacket(index);
  if (tcp.scoreboard.MarkLost()) {
    ClockRecovery(queue_id, &RecoveryTimes::retransmission_ps);
    if (!tcp.in_recovery) {
      tcp.in_recovery = true;
      tcp.recovery_end = queue.next_sequence;
      KindOf(queue_id).control->OnNack(QueuePairOf(queue_id), now_ps);
    }
  }
  ApplyLimits(queue_id);
  if (IsWaitingForRoom(queue)) ArmTimer(queue_id);
  if (SequenceDistance(ack.sequence, queue.oldest_end) >= 0) CompleteMessages(queue_id);
  Activate(queue_id);
}

// Returns whether everything that was sent has arrived and the receiver's window is closed.
bool TcpTransport::IsWaitingForRoom(const SendQueue& queue) {
  return queue.unacknowledged == queue.sent_end && queue.posted_end != queue.sent_end &&
         queue.window_packets == 0;
}

void TcpTransport::ArmTimer(QueueId queue_id) {
  const SendQueue& queue = send_queues_[queue_id];
  TcpSender& tcp = senders_[queue_id];
  const int64_t deadline_ps =
      std::max(queue.timer_start_ps + tcp.timeout.TimeoutPs(), network_.engine().NowPs());
  if (tcp.event_ps <= deadline_ps) return;  // which looks again
  tcp.event_ps = deadline_ps;
  ScheduleTimer(queue_id, deadline_ps);
}

void TcpTransport::OnTimer(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  TcpSender& tcp = senders_[queue_id];
  const int64_t now_ps = network_.engine().NowPs();
  if (tcp.event_ps != now_ps) return;
  tcp.event_ps = kNeverPs;
  if (queue.Is(SendQueue::kBroken)) return;
  const bool waits_for_room = IsWaitingForRoom(queue);
  if (queue.unacknowledged == queue.sent_end && !waits_for_room) return;
  if (queue.timer_start_ps + tcp.timeout.TimeoutPs() > now_ps) {
    ArmTimer(queue_id);
    return;
  }
  if (waits_for_room) {
    ProbeWindow(queue_id);
    tcp.timeout.BackOff();
    StartTimer(queue_id);
    return;
  }
  ++counters_.timeouts;
  ClockRecovery(queue_id, &RecoveryTimes::timeout_ps);
  NicOf(queue_id).NotifyTimeout({now_ps, QueuePairOf(queue_id)});
  if (tcp.first_repeat_ps >= 0 && now_ps - tcp.first_repeat_ps >= kTcpGiveUpPs) {
    Break(queue_id,
          {.is_unanswered = true,
           .why = fmt::format("{} on {}", kConnectionTimedOut, Describe(QueuePairOf(queue_id)))});
    return;
  }
  if (tcp.first_repeat_ps < 0) tcp.first_repeat_ps = now_ps;
  ++queue.retries;
  tcp.timeout.BackOff();
  tcp.scoreboard.MarkAllLost();
  tcp.in_recovery = true;
  tcp.recovery_end = queue.next_sequence;
  KindOf(queue_id).control->OnTimeout(QueuePairOf(queue_id), now_ps);
  ApplyLimits(queue_id);
  // The timer is restarted here as well, because the port may be blocked for a long time.
  StartTimer(queue_id);
  Activate(queue_id);
}

// Sends a segment that has arrived already, without payload. Its acknowledgement states the window.
void TcpTransport::ProbeWindow(QueueId queue_id) {
  const SendQueue& queue = send_queues_[queue_id];
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.timestamp_ps = network_.engine().NowPs();
  packet.flow = queue_id;
  packet.sequence = queue.unacknowledged - 1;
  packet.path = queue.first_link;
  packet.hop_count = queue.hop_count;
  packet.kind = PacketKind::kNetworkData;
  packet.wire_bytes = static_cast<uint16_t>(framing_.header_bytes);
  network_.Inject(index);
}

// --- Receiving end -------------------------------------------------------------------------------

// NICs only forward segments. The kernel takes them from memory, so a segment that it has
// acknowledged can no longer be lost.
void TcpTransport::OnPacketInMemory(PacketId index) {
  const Packet& packet = network_.packet(index);
  if (packet.kind == PacketKind::kAck) {
    OnAcknowledgement(index);
  } else if (receive_queues_[packet.flow].is_broken) {
    Refuse(index, DropReason::kQueuePairError);
  } else {
    OnSegment(index);
  }
}

void TcpTransport::OnSegment(PacketId index) {
  const Packet& packet = network_.packet(index);
  const QueueId queue_id{packet.flow};
  ReceiveQueue& queue = receive_queues_[queue_id];
  TcpReceiver& tcp = receivers_[queue_id];
  const int32_t distance = SequenceDistance(packet.sequence, queue.expected);
  const bool had_gap = tcp.reassembly.HasGap();
  TcpReassembly::Taken taken;
  if (distance >= 0) {
    taken = tcp.reassembly.Take(static_cast<uint32_t>(distance),
                                (packet.flags & Packet::kLastOfMessage) != 0);
  }
  queue.expected += taken.advanced;
  queue.unreported += taken.advanced;
  if (taken.advanced > 0) tcp.timestamp_ps = packet.timestamp_ps;
  if (!tcp.is_read_by_hand) tcp.read_end = queue.expected;
  // Segments that are out of order, that fill a gap (RFC 5681, section 4.2), or that follow a
  // silence are acknowledged at once.
  const bool is_in_order = taken.is_new && taken.advanced > 0 && !had_gap;
  if (tcp.IsQuick(network_.engine().NowPs()) || !is_in_order || taken.completed != 0 ||
      queue.unreported >= queue.ack_every_packets) {
    queue.unreported = 0;
    const bool is_beyond = taken.is_new && distance > 0;
    Acknowledge(queue_id, is_beyond ? tcp.reassembly.BlockAt(static_cast<uint32_t>(distance))
                                    : TcpReassembly::Block{});
  }
  if (taken.is_new) {
    Deliver(index, taken.completed);
  } else {
    Refuse(index, DropReason::kDuplicate);
  }
}

void TcpTransport::Acknowledge(QueueId queue_id, const TcpReassembly::Block& block) {
  ReceiveQueue& queue = receive_queues_[queue_id];
  TcpReceiver& tcp = receivers_[queue_id];
  tcp.offered_end = tcp.read_end + window_packets_;
  network_.paths().Fetch(queue.ack_first_link);
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.timestamp_ps = tcp.timestamp_ps;
  packet.acknowledged = TcpAckWord{.offered_end = tcp.offered_end,
                                   .block_begin = static_cast<uint16_t>(block.begin),
                                   .block_end = static_cast<uint16_t>(block.end)}
                            .Pack();
  packet.flow = queue_id;
  packet.sequence = queue.expected;
  packet.path = queue.ack_first_link;
  packet.hop_count = queue.ack_hop_count;
  packet.kind = PacketKind::kAck;
  packet.wire_bytes =
      static_cast<uint16_t>(framing_.header_bytes + (block.end != 0 ? kSackBytes : 0));
  network_.Inject(index);
}

void TcpTransport::ReadByHand(FlowId stream) {
  receivers_[DataQueueOf(stream)].is_read_by_hand = true;
}

void TcpTransport::Read(FlowId stream, uint64_t bytes) {
  const QueueId queue_id = DataQueueOf(stream);
  ReceiveQueue& queue = receive_queues_[queue_id];
  TcpReceiver& tcp = receivers_[queue_id];
  tcp.read_end += PacketsOf(bytes);
  SIM_CHECK(SequenceDistance(tcp.read_end, queue.expected) <= 0, "more was read than has come");
  // Linux announces room when it has doubled, at less than half of the buffer (tcp_cleanup_rbuf,
  // net/ipv4/tcp.c).
  const uint32_t offered = tcp.offered_end - queue.expected;
  const uint32_t room = tcp.read_end + window_packets_ - queue.expected;
  if (queue.is_broken || 2 * offered > window_packets_ || room < 2 * offered || room == 0) return;
  Acknowledge(queue_id, {});
}

// --- Descriptions --------------------------------------------------------------------------------

std::string TcpTransport::Describe(FlowId stream) const {
  const SendQueue& data = send_queues_[DataQueueOf(stream)];
  return fmt::format("{} ({} segments unacknowledged)", NamesOf(stream),
                     data.sent_end - data.unacknowledged);
}

std::string TcpTransport::DescribeRetries(QueueId queue) const {
  return fmt::format("sent again {} times", send_queues_[queue].retries);
}

}  // namespace railyard
