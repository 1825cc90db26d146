// SPDX-License-Identifier: GPL-2.0-only
// Says in words what queue pairs wait for.
#include <algorithm>

#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

std::string QueueTransport::NamesOf(FlowId queue_pair) const {
  return railyard::NamesOf(graph_, queue_pairs_[queue_pair]);
}

FlowStatus QueueTransport::StatusOf(FlowId queue_pair) const {
  const QueueTables tables = {graph_, network_, send_queues_, receive_queues_};
  FlowStatus status = {.is_under_way = IsUnderWay(tables, queue_pair),
                       .description = Describe(queue_pair),
                       .obstacles = ObstaclesOf(tables, queue_pair, queue_pairs_[queue_pair])};
  if (status.obstacles.empty()) {
    const auto tried = MostTriedQueue(tables, queue_pair);
    if (tried) status.obstacles.push_back(DescribeRetries(*tried));
  }
  return status;
}

std::optional<PlacedMessage> QueueTransport::MessageOf(QueueId queue, uint32_t sequence) const {
  if (const auto completed = history_->Find(queue, sequence)) return completed;
  PlacedMessage placed = history_->Next(queue);
  const MessageRing& messages = backlogs_[queue].messages;
  for (uint32_t position = messages.first(); position != messages.end(); ++position) {
    placed.message = messages.at(position);
    if (SequenceDistance(sequence, placed.message.first_sequence) < 0) break;
    if (SequenceDistance(sequence, placed.message.end_sequence) < 0) return placed;
    ++placed.number;
    placed.offset_bytes += placed.message.bytes;
  }
  return std::nullopt;
}

std::optional<SendLimits> QueueTransport::LimitsNow(FlowId queue_pair) const {
  const SendQueue& queue = send_queues_[DataQueueOf(queue_pair)];
  if (queue.posted_end == queue.unacknowledged) return std::nullopt;
  const NicKind& kind = kinds_[queue.nic_kind];
  SendLimits limits = kind.control->limits(queue_pair);
  limits.window_bytes = std::min(limits.window_bytes, uint64_t{kind.settings.window_bytes});
  if (queue.port != SendQueue::kNone) {
    limits.rate_bps = std::min(limits.rate_bps, network_.RateBps(ports_[queue.port].wire));
  }
  return limits;
}

}  // namespace railyard
