// SPDX-License-Identifier: GPL-2.0-only
// Defines base classes of schedules whose size is fixed at construction.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

class ShapedSchedule : public CollectiveSchedule {
 public:
  uint32_t rank_count() const final { return rank_count_; }
  uint32_t channel_count() const final { return channel_count_; }
  const MessageRule& message_rule() const final { return message_rule_; }

 protected:
  ShapedSchedule(uint32_t rank_count, uint32_t channel_count, const MessageRule& message_rule)
      : rank_count_(rank_count), channel_count_(channel_count), message_rule_(message_rule) {}

 private:
  uint32_t rank_count_;
  uint32_t channel_count_;
  MessageRule message_rule_;
};

// Is the base of schedules whose ranks exchange data in pairs: each rank has one lane on every
// channel with a share of the data.
class ExchangeSchedule : public ShapedSchedule {
 public:
  uint32_t BatchCount(RankIndex /*rank*/, uint32_t channel) const final {
    return shares_[channel].bytes != 0 ? 1 : 0;
  }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const final {
    return 1;
  }

 protected:
  ExchangeSchedule(uint32_t rank_count, std::vector<ChannelShare> shares,
                   const MessageRule& message_rule)
      : ShapedSchedule(rank_count, static_cast<uint32_t>(shares.size()), message_rule),
        shares_(std::move(shares)) {}
  const ChannelShare& ShareOf(uint32_t channel) const { return shares_[channel]; }

 private:
  std::vector<ChannelShare> shares_;
};

}  // namespace railyard
