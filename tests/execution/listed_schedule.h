// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workloads/collectives/schedule.h"

namespace railyard::testing {

// A schedule that a test writes down: for each rank the steps of one lane, the same on each
// channel. It means nothing but who sends whom how many bytes.
class ListedSchedule final : public CollectiveSchedule {
 public:
  ListedSchedule(MessageRule rule, uint32_t channels,
                 std::map<uint32_t, std::vector<Step>> steps_of_rank)
      : rule_(rule), channels_(channels), steps_of_rank_(std::move(steps_of_rank)) {}

  // `count` chunks from one rank to another.
  static ListedSchedule OneWay(MessageRule rule, int32_t from, int32_t to, uint64_t chunk_bytes,
                               size_t count) {
    return {rule,
            1,
            {{static_cast<uint32_t>(from), std::vector<Step>(count, Sends(to, chunk_bytes))},
             {static_cast<uint32_t>(to), std::vector<Step>(count, Receives(from, chunk_bytes))}}};
  }
  static Step Sends(int32_t to, uint64_t bytes) { return {.send_to = to, .bytes = bytes}; }
  static Step Receives(int32_t from, uint64_t bytes) { return {.recv_from = from, .bytes = bytes}; }

  uint32_t rank_count() const override { return static_cast<uint32_t>(steps_of_rank_.size()); }
  uint32_t channel_count() const override { return channels_; }
  const MessageRule& message_rule() const override { return rule_; }
  uint32_t BatchCount(RankIndex rank, uint32_t /*channel*/) const override {
    return steps_of_rank_.contains(rank) ? 1 : 0;
  }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const override {
    return 1;
  }
  LanePeers PeersOf(const LaneId& lane) const override {
    LanePeers peers;
    for (const Step& step : steps_of_rank_.at(lane.rank)) {
      if (step.recv_from != kNoPeer && peers.recv_from.empty()) {
        peers.recv_from.push_back({.rank = RankIndex{step.recv_from}});
      }
      if (step.send_to != kNoPeer && peers.send_to.empty()) {
        peers.send_to.push_back({.rank = RankIndex{step.send_to}});
      }
    }
    return peers;
  }
  uint64_t StepCount(const LaneId& lane) const override {
    return steps_of_rank_.at(lane.rank).size();
  }
  Step StepAt(const LaneId& lane, uint64_t step) const override {
    return steps_of_rank_.at(lane.rank)[step];
  }

 private:
  MessageRule rule_;
  uint32_t channels_;
  std::map<uint32_t, std::vector<Step>> steps_of_rank_;
};

// Ranks 0 and 1 exchange chunks: of a rank's batch the first lane receives, and the second sends,
// by warps of its own (Send and Recv).
class ExchangeSchedule final : public CollectiveSchedule {
 public:
  ExchangeSchedule(uint64_t chunk_bytes, uint64_t chunks)
      : chunk_bytes_(chunk_bytes), chunks_(chunks) {}

  uint32_t rank_count() const override { return 2; }
  uint32_t channel_count() const override { return 1; }
  const MessageRule& message_rule() const override { return rule_; }
  uint32_t BatchCount(RankIndex /*rank*/, uint32_t /*channel*/) const override { return 1; }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const override {
    return 2;
  }
  LanePeers PeersOf(const LaneId& lane) const override {
    LanePeers peers;
    (lane.lane == 0 ? peers.recv_from : peers.send_to).push_back({.rank = Other(lane)});
    return peers;
  }
  WarpShare WarpShareOf(const LaneId& /*lane*/) const override { return {.warps = 2}; }
  bool SharesWithLaneBefore(const LaneId& lane) const override { return lane.lane == 1; }
  uint64_t StepCount(const LaneId& /*lane*/) const override { return chunks_; }
  Step StepAt(const LaneId& lane, uint64_t /*step*/) const override {
    const auto other = static_cast<int32_t>(Other(lane));
    return lane.lane == 0 ? ListedSchedule::Receives(other, chunk_bytes_)
                          : ListedSchedule::Sends(other, chunk_bytes_);
  }

 private:
  static RankIndex Other(const LaneId& lane) { return RankIndex{1 - lane.rank}; }

  uint64_t chunk_bytes_;
  uint64_t chunks_;
  MessageRule rule_;
};

// Rank 0 sends a chunk to, or receives one from, each other rank, all in one round, several times.
class RoundSchedule final : public CollectiveSchedule {
 public:
  struct Shape {
    uint32_t others = 0;  // ranks
    uint64_t chunk_bytes = 0;
    uint64_t rounds = 0;
    bool gathers = false;
  };
  explicit RoundSchedule(const Shape& shape) : shape_(shape) {}

  uint32_t rank_count() const override { return 1 + shape_.others; }
  uint32_t channel_count() const override { return 1; }
  const MessageRule& message_rule() const override { return rule_; }
  uint32_t BatchCount(RankIndex /*rank*/, uint32_t /*channel*/) const override { return 1; }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const override {
    return 1;
  }
  LanePeers PeersOf(const LaneId& lane) const override {
    LanePeers peers;
    const bool sends = shape_.gathers != (lane.rank == 0);
    std::vector<LanePeer>& side = sends ? peers.send_to : peers.recv_from;
    if (lane.rank != 0) side.push_back({.rank = RankIndex{0}});
    for (uint32_t i = 1; lane.rank == 0 && i <= shape_.others; ++i) {
      side.push_back({.rank = RankIndex{i}});
    }
    return peers;
  }
  uint32_t StepsAtOnce(const LaneId& lane) const override {
    return lane.rank == 0 ? shape_.others : 1;
  }
  bool AreOneRound(const LaneId& lane) const override { return lane.rank == 0; }
  uint64_t StepCount(const LaneId& lane) const override {
    return shape_.rounds * StepsAtOnce(lane);
  }
  Step StepAt(const LaneId& lane, uint64_t step) const override {
    const bool sends = shape_.gathers != (lane.rank == 0);
    const auto peer = lane.rank == 0 ? static_cast<int32_t>(1 + step % shape_.others) : 0;
    return sends ? ListedSchedule::Sends(peer, shape_.chunk_bytes)
                 : ListedSchedule::Receives(peer, shape_.chunk_bytes);
  }

 private:
  Shape shape_;
  MessageRule rule_;
};

}  // namespace railyard::testing
