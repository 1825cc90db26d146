// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/message_history.h"

#include <algorithm>

#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/transport/nic/queue_state.h"

namespace railyard {

void MessageHistory::Add(QueueId queue, const MessageRing::Message& message) {
  if (completed_.size() <= queue) completed_.resize(queue + size_t{1});
  PlacedMessage placed = Next(queue);
  placed.message = message;
  std::deque<PlacedMessage>& completed = completed_[queue];
  completed.push_back(placed);
  if (completed.size() > kMessagesMax) completed.pop_front();
}

std::optional<PlacedMessage> MessageHistory::Find(QueueId queue, uint32_t sequence) const {
  if (queue >= completed_.size()) return std::nullopt;
  const std::deque<PlacedMessage>& completed = completed_[queue];
  const auto found = std::ranges::partition_point(completed, [&](const PlacedMessage& placed) {
    return SequenceDistance(placed.message.end_sequence, sequence) <= 0;
  });
  if (found == completed.end()) return std::nullopt;
  if (SequenceDistance(sequence, found->message.first_sequence) < 0) return std::nullopt;
  return *found;
}

PlacedMessage MessageHistory::Next(QueueId queue) const {
  if (queue >= completed_.size() || completed_[queue].empty()) return {};
  const PlacedMessage& last = completed_[queue].back();
  return {.message = {},
          .number = last.number + 1,
          .offset_bytes = last.offset_bytes + last.message.bytes};
}

}  // namespace railyard
