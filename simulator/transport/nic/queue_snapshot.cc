// SPDX-License-Identifier: GPL-2.0-only
// Visits the state of quiescent queue pairs, besides the field tables of their records. Only
// differences of sequence numbers matter, since both ends of a queue count on from there.
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

void QueueTransport::Visit(StateArchive& archive) {
  archive.Named("queues").Constant(send_queues_.size());
  archive.Section();
  for (QueueId queue{0}; queue < send_queues_.size(); ++queue) Visit(queue, archive);
  archive.Section();
  ports_.Visit(archive);
  VisitCounters(archive);
}

void QueueTransport::VisitQueuePair(FlowId queue_pair, StateArchive& archive) {
  for (const QueueId queue : {DataQueueOf(queue_pair), GrantQueueOf(queue_pair)}) {
    archive.Require(!send_queues_[queue].Is(SendQueue::kBroken) &&
                    !receive_queues_[queue].is_broken);
    VisitEnds(queue, archive);
  }
}

// The bits of TakeTimers().
constexpr uint8_t kDataTimer = 1;
constexpr uint8_t kGrantTimer = 2;

uint8_t QueueTransport::TakeTimers(FlowId queue_pair) {
  uint8_t timers = 0;
  const auto take = [&](QueueId queue_id, uint8_t timer) {
    SendQueue& queue = send_queues_[queue_id];
    if (queue.Is(SendQueue::kTimerPending)) timers |= timer;
    queue.Clear(SendQueue::kTimerPending);
  };
  take(DataQueueOf(queue_pair), kDataTimer);
  take(GrantQueueOf(queue_pair), kGrantTimer);
  return timers;
}

void QueueTransport::PutTimers(FlowId queue_pair, uint8_t timers) {
  const auto put = [&](QueueId queue_id, uint8_t timer) {
    if ((timers & timer) != 0) send_queues_[queue_id].Set(SendQueue::kTimerPending);
  };
  put(DataQueueOf(queue_pair), kDataTimer);
  put(GrantQueueOf(queue_pair), kGrantTimer);
}

void QueueTransport::VisitCounters(StateArchive& archive) {
  VisitFields(counters_, archive);
  payload_count_.Visit(archive);
}

void QueueTransport::Visit(QueueId id, StateArchive& archive) {
  if (archive.is_naming()) archive.BeginRecord("queue", id);
  SendQueue& sender = send_queues_[id];
  // The remaining state of a queue that is never used again has no effect.
  if (sender.Is(SendQueue::kBroken) || receive_queues_[id].is_broken) {
    archive.Require(!sender.Is(SendQueue::kActive));
    return;
  }
  archive.Named("path").Constant(paths_.HashOf(sender.path()));
  archive.Named("path of ACKs").Constant(paths_.HashOf(receive_queues_[id].ack_path()));
  archive.Named("port").Constant(sender.port);
  VisitEnds(id, archive);
  if (archive.is_checking()) Check(id, archive);
}

// Snapshots need nothing of these records.
void QueueTransport::Check(QueueId id, StateArchive& archive) {
  CheckFields(backlogs_[id], id, archive);
  recoveries_.Check(id, archive);
  if (IsDataQueue(id)) CheckFields(pacers_[QueuePairOf(id)], QueuePairOf(id), archive);
  CheckQueueState(id, archive);
}

void QueueTransport::VisitEnds(QueueId id, StateArchive& archive) {
  SendQueue& sender = send_queues_[id];
  ReceiveQueue& receiver = receive_queues_[id];
  archive.Require(receiver.expected == sender.posted_end);
  // A queue's position in its stream affects only random draws, which use packets' sequence
  // numbers.
  const uint32_t before = sender.posted_end;
  VisitFields(sender, id, archive);
  if (const uint32_t passed = sender.posted_end - before; passed != 0) {
    for (uint32_t* const sequence :
         {&sender.message.first_sequence, &sender.message.end_sequence, &receiver.expected}) {
      *sequence += passed;
    }
  }
  VisitFields(receiver, id, archive);
  if (!IsDataQueue(id)) return;
  const NicKind& kind = kinds_[sender.nic_kind];
  archive.Require(!kind.is_never_replayed);
  if (!kind.is_never_replayed) kind.control->Visit(QueuePairOf(id), archive);
}

}  // namespace railyard
