// SPDX-License-Identifier: GPL-2.0-only
// The state of queue pairs that wait for nothing. Sequence numbers, positions in the rings of
// messages and the events of timers that have nothing to wait for are left out: only differences of
// the former count, and the latter pass without effect. Whether a message had flags says where to
// look for the sizes of the next, and nothing else.
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/mix64.h"

namespace railyard {

std::string QueueTransport::state_name() const {
  return "queue pairs with " + control_->GetInstanceTypeId().GetName();
}

std::string QueueTransport::WhyNeverReplayed() const {
  if (control_->Forgets()) return {};
  return "the congestion control keeps something of all that a queue pair has met";
}

void QueueTransport::Visit(StateArchive& archive) {
  archive.Constant(send_queues_.size());
  archive.Section();
  for (uint32_t queue = 0; queue < send_queues_.size(); ++queue) Visit(queue, archive);
  archive.Section();
  for (NicPort& port : ports_) Visit(port, archive);
  VisitCounters(archive);
}

void QueueTransport::VisitQueuePair(uint32_t queue_pair, StateArchive& archive) {
  for (const uint32_t queue : {2 * queue_pair, 2 * queue_pair + 1}) {
    archive.Require(!send_queues_[queue].Is(SendQueue::kBroken) &&
                    !receive_queues_[queue].is_broken);
    VisitEnds(queue, archive);
  }
}

void QueueTransport::VisitPorts(DeviceId nic, StateArchive& archive) {
  for (const LinkId wire : graph_.WiresOfNic(nic)) Visit(ports_[port_of_link_[wire]], archive);
}

uint8_t QueueTransport::TakeTimers(uint32_t queue_pair) {
  uint8_t timers = 0;
  for (const uint32_t end : {0u, 1u}) {
    SendQueue& queue = send_queues_[size_t{2} * queue_pair + end];
    if (queue.Is(SendQueue::kTimerPending)) timers |= static_cast<uint8_t>(1u << end);
    queue.Clear(SendQueue::kTimerPending);
  }
  return timers;
}

void QueueTransport::PutTimers(uint32_t queue_pair, uint8_t timers) {
  for (const uint32_t end : {0u, 1u}) {
    if ((timers >> end & 1) != 0) {
      send_queues_[size_t{2} * queue_pair + end].Set(SendQueue::kTimerPending);
    }
  }
}

void QueueTransport::Visit(NicPort& port, StateArchive& archive) {
  archive.Require(port.first_active == SendQueue::kNone && port.paced.empty() &&
                  port.event_ps == kNeverPs);
  archive.Instant(port.free_ps);
}

void QueueTransport::VisitCounters(StateArchive& archive) {
  archive.Count(counters_.nacks);
  archive.Count(counters_.ecn_marked);
  archive.Count(counters_.cnp);
  archive.Count(counters_.tolerant_messages);
  archive.Count(counters_.dispensable_packets);
  archive.Unrepeatable(counters_.missing_packets);
  archive.Unrepeatable(counters_.retransmitted_packets);
  archive.Unrepeatable(counters_.timeouts);
  archive.Unrepeatable(counters_.queue_pair_errors);
}

void QueueTransport::Visit(uint32_t id, StateArchive& archive) {
  SendQueue& sender = send_queues_[id];
  // What is left in a queue that is never used again makes no difference.
  if (sender.Is(SendQueue::kBroken) || receive_queues_[id].is_broken) {
    archive.Require(!sender.Is(SendQueue::kActive));
    return;
  }
  archive.Constant(HashOfPath(sender.path()));
  archive.Constant(HashOfPath(receive_queues_[id].ack_path()));
  archive.Constant(sender.port);
  VisitEnds(id, archive);
}

void QueueTransport::VisitEnds(uint32_t id, StateArchive& archive) {
  SendQueue& sender = send_queues_[id];
  ReceiveQueue& receiver = receive_queues_[id];
  archive.Require(sender.unacknowledged == sender.posted_end &&
                  sender.next_sequence == sender.posted_end &&
                  sender.sent_end == sender.posted_end && receiver.expected == sender.posted_end &&
                  (sender.flags & ~(SendQueue::kTimerPending | SendQueue::kHasFlags)) == 0);
  archive.Require(!receiver.nack_sent && !receiver.refused && receiver.beyond == 0);
  // A queue's place in its stream counts for nothing but draws, which packets have by their
  // sequence numbers.
  const uint32_t before = sender.posted_end;
  archive.Count(sender.posted_end);
  if (const uint32_t passed = sender.posted_end - before; passed != 0) {
    for (uint32_t* const sequence :
         {&sender.next_sequence, &sender.unacknowledged, &sender.sent_end,
          &sender.message.first_sequence, &sender.message.end_sequence, &receiver.expected}) {
      *sequence += passed;
    }
  }
  archive.Constant(sender.window_packets);
  archive.Value(sender.retries);
  archive.Value(receiver.unreported);
  archive.Value(receiver.receives);
  archive.Value(receiver.marked);
  archive.Instant(receiver.next_cnp_ps);
  if (IsData(id)) archive.Require(control_->HasForgotten(id / 2));
}

uint64_t QueueTransport::HashOfPath(PathRef path) const {
  uint64_t hash = path.hop_count;
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    hash = Mix64(hash ^ network_.LinkOfPath(path, hop));
  }
  return hash;
}

}  // namespace railyard
