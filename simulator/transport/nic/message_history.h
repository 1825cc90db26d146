// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "simulator/transport/nic/message_ring.h"
#include "simulator/transport/nic/queue_id.h"

namespace railyard {

// Describes a message of a queue, and its place in the queue's stream of bytes.
struct PlacedMessage {
  MessageRing::Message message;
  uint64_t number = 0;        // from 0
  uint64_t offset_bytes = 0;  // of its first byte, from 0
};

// Remembers the latest messages that each queue has completed, so that a recorder can still find
// the message of a late packet, such as a needless retransmission.
class MessageHistory {
 public:
  static constexpr size_t kMessagesMax = 1024;  // remembered per queue

  // Adds the oldest message of a queue, which the queue has completed.
  void Add(QueueId queue, const MessageRing::Message& message);
  // Returns the completed message that contains a packet of the queue. Returns nullopt if that
  // message is not complete, or too old.
  std::optional<PlacedMessage> Find(QueueId queue, uint32_t sequence) const;
  // Returns the place of the queue's oldest message that is not complete; its `message` is empty.
  PlacedMessage Next(QueueId queue) const;

 private:
  std::vector<std::deque<PlacedMessage>> completed_;  // by queue, oldest first
};

}  // namespace railyard
