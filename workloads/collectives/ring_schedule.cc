// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/ring_schedule.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

RingTable::RingTable(const std::vector<std::vector<uint32_t>>& rings)
    : rank_count_(rings.empty() ? 0 : static_cast<uint32_t>(rings.front().size())),
      channel_count_(static_cast<uint32_t>(rings.size())),
      position_of_(rings.size() * rank_count_) {
  rank_at_.reserve(position_of_.size());
  for (uint32_t channel = 0; channel < channel_count_; ++channel) {
    for (uint32_t position = 0; position < rank_count_; ++position) {
      const RankIndex rank{rings[channel][position]};
      rank_at_.push_back(rank);
      position_of_[channel * rank_count_ + rank] = position;
    }
  }
}

RingSchedule::RingSchedule(std::shared_ptr<const RingTable> rings, const RingParameters& parameters)
    : rings_(std::move(rings)),
      kind_(parameters.kind),
      block_bytes_(parameters.block_bytes),
      root_(parameters.root),
      chunk_bytes_(parameters.chunk_bytes),
      message_rule_(parameters.message_rule) {
  const uint64_t n = rings_->rank_count();
  SIM_CHECK(n >= 2 && parameters.shares.size() == rings_->channel_count(),
            "a ring schedule needs two ranks and a share for each channel");
  switch (kind_) {
    case CollectiveKind::kAllReduce:
      steps_per_loop_ = 2 * n - 1;
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      steps_per_loop_ = n;
      break;
    default:
      SIM_CHECK(kind_ == CollectiveKind::kBroadcast || kind_ == CollectiveKind::kReduce,
                "not a ring collective: " + std::string(CollectiveKindName(kind_)));
      steps_per_loop_ = 1;
  }
  channels_.reserve(parameters.shares.size());
  for (const ChannelShare& share : parameters.shares) {
    Channel channel;
    channel.offset_bytes = share.offset_bytes;
    channel.bytes = share.bytes;
    if (share.bytes != 0) {
      const uint64_t loop_bytes =
          kind_ == CollectiveKind::kAllReduce ? n * chunk_bytes_ : chunk_bytes_;
      const uint64_t loops = DivideUp(share.bytes, loop_bytes);
      channel.step_count = loops * steps_per_loop_;
      channel.last_loop = loops - 1;
      // The rest of an AllReduce is split n ways in units of 16 bytes.
      const uint64_t rest_bytes = share.bytes - channel.last_loop * loop_bytes;
      channel.last_loop_chunk_bytes =
          std::min(chunk_bytes_, DivideUp(DivideUp(rest_bytes, n), 16) * 16);
    }
    channels_.push_back(channel);
  }
}

uint32_t RingSchedule::BatchCount(RankIndex /*rank*/, uint32_t channel) const {
  return channels_[channel].bytes != 0 ? 1 : 0;
}

uint32_t RingSchedule::LaneCount(RankIndex /*rank*/, uint32_t channel, uint32_t /*batch*/) const {
  return channels_[channel].bytes != 0 ? 1 : 0;
}

LanePeers RingSchedule::PeersOf(const LaneId& lane) const {
  const uint32_t n = rings_->rank_count();
  const uint32_t position = rings_->PositionOf(lane.channel, lane.rank);
  const RankIndex previous = rings_->RankAt(lane.channel, position == 0 ? n - 1 : position - 1);
  const RankIndex next = rings_->RankAt(lane.channel, position + 1 == n ? 0 : position + 1);
  const bool is_broadcast = kind_ == CollectiveKind::kBroadcast;
  const bool is_reduce = kind_ == CollectiveKind::kReduce;
  const bool is_first = (is_broadcast && lane.rank == root_) || (is_reduce && previous == root_);
  const bool is_last = (is_broadcast && next == root_) || (is_reduce && lane.rank == root_);
  LanePeers peers;
  if (!is_first) peers.recv_from = {{previous, ConnectionUse::kRing}};
  if (!is_last) peers.send_to = {{next, ConnectionUse::kRing}};
  return peers;
}

uint64_t RingSchedule::StepCount(const LaneId& lane) const {
  return channels_[lane.channel].step_count;
}

Step RingSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const Channel& channel = channels_[lane.channel];
  const uint32_t n = rings_->rank_count();
  const uint32_t position = rings_->PositionOf(lane.channel, lane.rank);
  Step result;
  switch (kind_) {
    case CollectiveKind::kAllReduce:
      result = AllReduceStep(channel, position, step);
      break;
    case CollectiveKind::kAllGather:
      result = AllGatherStep(channel, lane, position, step);
      break;
    case CollectiveKind::kReduceScatter:
      result = ReduceScatterStep(channel, lane, position, step);
      break;
    default:
      result = ChainStep(channel, lane, position, step);
  }
  // The step functions mark directions; here they become the neighbours.
  if (result.recv_from != kNoPeer) {
    const uint32_t previous = position == 0 ? n - 1 : position - 1;
    result.recv_from = static_cast<int32_t>(rings_->RankAt(lane.channel, previous));
  }
  if (result.send_to != kNoPeer) {
    const uint32_t next = position + 1 == n ? 0 : position + 1;
    result.send_to = static_cast<int32_t>(rings_->RankAt(lane.channel, next));
  }
  return result;
}

uint64_t RingSchedule::AlikeFrom(const LaneId& lane, uint64_t step) const {
  const Channel& channel = channels_[lane.channel];
  const uint64_t s = step % steps_per_loop_;
  switch (kind_) {
    case CollectiveKind::kAllReduce:
      return AllReduceAlikeFrom(channel, rings_->PositionOf(lane.channel, lane.rank), step);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      // All of a loop but its first and last step.
      return s == 0 || s == steps_per_loop_ - 1 ? 1 : steps_per_loop_ - 1 - s;
    default: {
      const uint64_t full_chunks = channel.bytes / chunk_bytes_;
      return step < full_chunks ? full_chunks - step : 1;
    }
  }
}

// Rank at position i, indices modulo n. Step 0 sends chunk i-1; steps 1..n-2 receive, reduce and
// send chunk i-1-s; step n-1 completes chunk i, keeps and sends it; steps n..2n-3 receive, keep and
// send chunk i-1-s again; step 2n-2 receives and keeps chunk i+1.
Step RingSchedule::AllReduceStep(const Channel& channel, uint32_t position, uint64_t step) const {
  const uint64_t n = rings_->rank_count();
  const uint64_t loop = step / steps_per_loop_;
  const uint64_t s = step - loop * steps_per_loop_;
  const uint64_t begin_bytes = loop * n * chunk_bytes_;
  const uint64_t chunk_bytes =
      loop == channel.last_loop ? channel.last_loop_chunk_bytes : chunk_bytes_;
  uint64_t chunk = position + 2 * n - 1 - s;  // in 1 .. 3n-2
  if (chunk >= n) chunk -= n;
  if (chunk >= n) chunk -= n;
  const uint64_t rest_bytes = channel.bytes - begin_bytes;
  const uint64_t within_bytes = std::min(rest_bytes, chunk * chunk_bytes);
  Step result;
  result.offset_bytes = channel.offset_bytes + begin_bytes + within_bytes;
  result.bytes = std::min(chunk_bytes, rest_bytes - within_bytes);
  result.recv_from = s == 0 ? kNoPeer : 0;
  result.send_to = s == 2 * n - 2 ? kNoPeer : 0;
  result.load_local = s < n;
  result.reduce = s > 0 && s < n;
  result.store = s >= n - 1;
  return result;
}

// Between a loop's first and last step chunk numbers fall by one, modulo n; full chunks come first
// in a loop's bytes, then at most one shorter, then empty ones.
uint64_t RingSchedule::AllReduceAlikeFrom(const Channel& channel, uint32_t position,
                                          uint64_t step) const {
  const uint64_t n = rings_->rank_count();
  const uint64_t loop = step / steps_per_loop_;
  const uint64_t s = step - loop * steps_per_loop_;
  if (s == 0 || s == steps_per_loop_ - 1) return 1;
  const uint64_t until_last = steps_per_loop_ - 1 - s;
  if (loop != channel.last_loop) return until_last;
  const uint64_t rest_bytes = channel.bytes - loop * n * chunk_bytes_;
  const uint64_t full_chunks = rest_bytes / channel.last_loop_chunk_bytes;
  if (full_chunks >= n) return until_last;
  const uint64_t chunk = (position + 2 * n - 1 - s) % n;
  if (chunk < full_chunks) return std::min(until_last, chunk + 1);
  return std::min(until_last, std::max<uint64_t>(1, chunk - full_chunks));
}

// Blocks are named by the rank they belong to. Step 0 sends the own block; steps 1..n-2 receive,
// keep and send the block of position i-s; step n-1 receives that of position i+1.
Step RingSchedule::AllGatherStep(const Channel& channel, const LaneId& lane, uint32_t position,
                                 uint64_t step) const {
  const uint32_t n = rings_->rank_count();
  const uint64_t loop = step / n;
  const uint32_t s = static_cast<uint32_t>(step - loop * n);
  const uint32_t of_position = position >= s ? position - s : position + n - s;
  const uint64_t within_bytes = loop * chunk_bytes_;
  Step result;
  result.offset_bytes = rings_->RankAt(lane.channel, of_position) * block_bytes_ +
                        channel.offset_bytes + within_bytes;
  result.bytes = std::min(chunk_bytes_, channel.bytes - within_bytes);
  result.recv_from = s == 0 ? kNoPeer : 0;
  result.send_to = s == n - 1 ? kNoPeer : 0;
  result.load_local = s == 0;
  result.store = true;
  return result;
}

// Step 0 sends the block of position i-1; steps 1..n-2 receive, reduce and send that of position
// i-1-s; step n-1 receives, reduces and keeps the own block.
Step RingSchedule::ReduceScatterStep(const Channel& channel, const LaneId& lane, uint32_t position,
                                     uint64_t step) const {
  const uint32_t n = rings_->rank_count();
  const uint64_t loop = step / n;
  const uint32_t s = static_cast<uint32_t>(step - loop * n);
  const uint32_t of_position = position >= s + 1 ? position - s - 1 : position + n - s - 1;
  const uint64_t within_bytes = loop * chunk_bytes_;
  Step result;
  result.offset_bytes = rings_->RankAt(lane.channel, of_position) * block_bytes_ +
                        channel.offset_bytes + within_bytes;
  result.bytes = std::min(chunk_bytes_, channel.bytes - within_bytes);
  result.recv_from = s == 0 ? kNoPeer : 0;
  result.send_to = s == n - 1 ? kNoPeer : 0;
  result.load_local = true;
  result.reduce = s > 0;
  result.store = s == n - 1;
  return result;
}

// Broadcast runs from the root along `next` and ends before it; Reduce runs from the root's `next`
// round to the root.
Step RingSchedule::ChainStep(const Channel& channel, const LaneId& lane, uint32_t position,
                             uint64_t step) const {
  const uint32_t n = rings_->rank_count();
  const uint64_t within_bytes = step * chunk_bytes_;
  Step result;
  result.offset_bytes = channel.offset_bytes + within_bytes;
  result.bytes = std::min(chunk_bytes_, channel.bytes - within_bytes);
  const RankIndex next = rings_->RankAt(lane.channel, position + 1 == n ? 0 : position + 1);
  const RankIndex previous = rings_->RankAt(lane.channel, position == 0 ? n - 1 : position - 1);
  if (kind_ == CollectiveKind::kBroadcast) {
    result.recv_from = lane.rank == root_ ? kNoPeer : 0;
    result.send_to = next == root_ ? kNoPeer : 0;
    result.load_local = lane.rank == root_;
    result.store = true;
  } else {
    result.recv_from = previous == root_ ? kNoPeer : 0;
    result.send_to = lane.rank == root_ ? kNoPeer : 0;
    result.load_local = true;
    result.reduce = result.recv_from != kNoPeer;
    result.store = lane.rank == root_;
  }
  return result;
}

}  // namespace railyard
