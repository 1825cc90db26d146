// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace railyard {

// Holds the messages of one send queue that are not completely acknowledged, oldest first.
// Positions count all messages ever posted, modulo 2^32, so they stay valid when messages are added
// and removed. The ring's size is the largest number of messages outstanding at once, rounded up to
// a power of two.
class MessageRing {
 public:
  struct Message {
    uint32_t first_sequence = 0;
    uint32_t end_sequence = 0;  // one past the last
    uint32_t bytes = 0;
    uint32_t dispensable = 0;  // packets, except the last, that the receiver can go without
  };

  bool empty() const { return first_ == end_; }
  uint32_t first() const { return first_; }  // position of the oldest
  uint32_t end() const { return end_; }      // one past that of the newest
  // Precondition: first() <= position < end().
  const Message& at(uint32_t position) const { return SlotOf(position).message; }
  uint32_t data_bytes_at(uint32_t position) const { return SlotOf(position).data_bytes; }

  // `data_bytes` is the part of the message's bytes that is the collective's data.
  void PushBack(const Message& message, uint32_t data_bytes) {
    if (end_ - first_ == slots_.size()) Grow();
    slots_[end_++ & (slots_.size() - 1)] = {message, data_bytes};
  }
  void PopFront() { ++first_; }

 private:
  struct Slot {
    Message message;
    uint32_t data_bytes = 0;
  };
  static constexpr size_t kFirstSize = 8;  // NCCL_STEPS: NCCL's messages in flight on a connection

  const Slot& SlotOf(uint32_t position) const { return slots_[position & (slots_.size() - 1)]; }
  void Grow() {
    std::vector<Slot> grown(slots_.empty() ? kFirstSize : 2 * slots_.size());
    for (uint32_t position = first_; position != end_; ++position) {
      grown[position & (grown.size() - 1)] = SlotOf(position);
    }
    slots_.swap(grown);
  }

  std::vector<Slot> slots_;
  uint32_t first_ = 0;
  uint32_t end_ = 0;
};

}  // namespace railyard
