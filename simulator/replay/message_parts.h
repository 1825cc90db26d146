// SPDX-License-Identifier: GPL-2.0-only
// The messages of a connection that has several queue pairs (NCCL_IB_QPS_PER_CONNECTION,
// src/transport/net_ib): each goes by one of them in turn, or is split over all
// (NCCL_IB_SPLIT_DATA_ON_QPS). Queue pairs do not wait for one another; the proxies at both ends
// take messages in their order. Plain state, of one connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "simulator/engine/state_archive.h"
#include "simulator/replay/connection.h"

namespace railyard {

// How messages go by queue pairs.
struct QueuePairRule {
  uint32_t count = 1;
  bool is_split = false;

  uint32_t PartCount() const { return is_split ? count : 1; }
  // Which queue pair takes a part of a message.
  uint32_t IndexOf(uint64_t message, uint32_t part) const {
    return is_split ? part : static_cast<uint32_t>(message % count);
  }
  // A part's bytes: shares are multiples of 128 B, so that lines of LL128 stay whole; the last ones
  // may be shorter, or empty.
  uint64_t PartBytes(uint64_t bytes, uint32_t part) const {
    if (!is_split) return bytes;
    const uint64_t share = ((bytes + count - 1) / count + 127) / 128 * 128;
    const uint64_t begin = std::min(bytes, part * share);
    return std::min(share, bytes - begin);
  }
};

// What became of the messages at one end: parts arrive by queue pair, messages in their order.
class PartsInOrder {
 public:
  explicit PartsInOrder(const QueuePairRule& rule) : of_queue_pair_(rule.count) {}

  // A queue pair is done with its next part; how many messages are complete with that, and all
  // before them.
  uint32_t Take(const QueuePairRule& rule, uint32_t queue_pair) {
    const uint64_t before = of_queue_pair_[queue_pair]++;
    const uint64_t message = rule.is_split ? before : before * rule.count + queue_pair;
    ++parts_[message % kConnectionSlots];
    uint32_t complete = 0;
    for (; parts_[next_ % kConnectionSlots] == rule.PartCount(); ++next_, ++complete) {
      parts_[next_ % kConnectionSlots] = 0;
    }
    return complete;
  }
  // All messages below `turn` are complete, and none else: what that is to the queue pairs.
  void Rebase(const QueuePairRule& rule, uint32_t turn) {
    next_ = turn;
    for (uint32_t i = 0; i < rule.count; ++i)
      of_queue_pair_[i] = rule.is_split || i >= turn ? 0 : 1;
  }

 private:
  uint64_t next_ = 0;
  std::array<uint32_t, kConnectionSlots> parts_{};
  std::vector<uint64_t> of_queue_pair_;
};

struct MessageParts {
  explicit MessageParts(const QueuePairRule& rule) : delivered(rule), completed(rule) {}

  // At rest only the queue pair whose turn it is decides what comes.
  void Visit(const QueuePairRule& rule, StateArchive& archive) {
    const auto now = static_cast<uint32_t>(rule.is_split ? 0 : posted % rule.count);
    uint32_t turn = now;
    archive.Value(turn);
    if (turn == now) return;
    posted = granted = turn;
    delivered.Rebase(rule, turn);
    completed.Rebase(rule, turn);
  }

  uint64_t posted = 0;
  uint64_t granted = 0;
  PartsInOrder delivered;
  PartsInOrder completed;
};

}  // namespace railyard
