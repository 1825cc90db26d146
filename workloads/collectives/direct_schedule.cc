// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/direct_schedule.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

namespace {

constexpr uint64_t kPartGrainBytes = 16;  // as NCCL's rings divide a vector

}  // namespace

DirectSchedule::DirectSchedule(DirectParameters parameters)
    : ExchangeSchedule(parameters.rank_count, parameters.shares, parameters.message_rule),
      parameters_(std::move(parameters)) {
  SIM_CHECK(parameters_.rank_count >= 2 && parameters_.chunk_bytes > 0,
            "a direct schedule needs two ranks and a chunk size");
  SIM_CHECK(Is(CollectiveKind::kAllReduce) || Is(CollectiveKind::kAllGather) ||
                Is(CollectiveKind::kReduceScatter),
            "direct exchange is for AllReduce, AllGather and ReduceScatter");
}

LanePeers DirectSchedule::PeersOf(const LaneId& lane) const {
  LanePeers peers;
  for (uint32_t rank = 0; rank < parameters_.rank_count; ++rank) {
    if (rank == lane.rank) continue;
    peers.recv_from.push_back({RankIndex{rank}, ConnectionUse::kExchange});
    peers.send_to.push_back({RankIndex{rank}, ConnectionUse::kExchange});
  }
  return peers;
}

uint64_t DirectSchedule::PartBytes(uint32_t channel) const {
  const uint64_t bytes = ShareOf(channel).bytes;
  if (!Is(CollectiveKind::kAllReduce)) return bytes;
  return DivideUp(DivideUp(bytes, parameters_.rank_count), kPartGrainBytes) * kPartGrainBytes;
}

uint64_t DirectSchedule::ChunkCount(uint32_t channel) const {
  return DivideUp(PartBytes(channel), parameters_.chunk_bytes);
}

// In AllReduce the last parts may be shorter, or empty.
Step DirectSchedule::ChunkOf(uint32_t channel, uint64_t part, uint64_t chunk) const {
  const ChannelShare& share = ShareOf(channel);
  const uint64_t part_bytes = PartBytes(channel);
  const uint64_t begin = chunk * parameters_.chunk_bytes;
  const uint64_t end = std::min(part_bytes, begin + parameters_.chunk_bytes);
  Step step;
  if (Is(CollectiveKind::kAllReduce)) {
    const uint64_t from = std::min(share.bytes, part * part_bytes + begin);
    step.offset_bytes = share.offset_bytes + from;
    step.bytes = std::min(share.bytes, part * part_bytes + end) - from;
  } else {
    step.offset_bytes = part * parameters_.block_bytes + share.offset_bytes + begin;
    step.bytes = end - begin;
  }
  return step;
}

ExchangeOrder DirectSchedule::OrderOf(uint32_t channel) const {
  const uint64_t others = parameters_.rank_count - 1;
  const uint64_t messages = ChunkCount(channel) * others;
  return {.sends = messages,
          .receives = messages,
          .ahead = std::max<uint64_t>(others, parameters_.message_rule.in_flight_messages)};
}

uint64_t DirectSchedule::StepCount(const LaneId& lane) const {
  const uint64_t messages = OrderOf(lane.channel).count();
  // AllGather copies its own block first.
  if (Is(CollectiveKind::kAllGather)) return ChunkCount(lane.channel) + messages;
  return Is(CollectiveKind::kAllReduce) ? 2 * messages : messages;
}

Step DirectSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const ExchangeOrder order = OrderOf(lane.channel);
  if (Is(CollectiveKind::kAllGather)) {
    const uint64_t chunks = ChunkCount(lane.channel);
    if (step >= chunks) return GatherStep(lane, order.At(step - chunks));
    Step copy = ChunkOf(lane.channel, lane.rank, step);
    copy.load_local = true;
    copy.keep = true;
    copy.store = true;
    return copy;
  }
  if (step < order.count()) return ReduceStep(lane, order.At(step));
  return GatherStep(lane, order.At(step - order.count()));
}

// A rank first sends to the next rank, and first receives from the previous one.
Step DirectSchedule::ReduceStep(const LaneId& lane, const ExchangeOrder::Place& place) const {
  const uint64_t n = parameters_.rank_count;
  const uint64_t chunk = place.number / (n - 1);
  const uint64_t distance = place.number % (n - 1) + 1;
  if (place.is_send) {
    const uint64_t to = (lane.rank + distance) % n;
    Step step = ChunkOf(lane.channel, to, chunk);
    step.send_to = static_cast<int32_t>(to);
    step.load_local = true;
    return step;
  }
  Step step = ChunkOf(lane.channel, lane.rank, chunk);
  step.recv_from = static_cast<int32_t>((lane.rank + n - distance) % n);
  step.load_local = distance == 1;
  step.load_kept = distance != 1;
  step.reduce = true;
  const bool is_last = distance == n - 1;
  step.store = is_last;
  step.keep = !is_last || Is(CollectiveKind::kAllReduce);
  return step;
}

Step DirectSchedule::GatherStep(const LaneId& lane, const ExchangeOrder::Place& place) const {
  const uint64_t n = parameters_.rank_count;
  const uint64_t chunk = place.number / (n - 1);
  const uint64_t distance = place.number % (n - 1) + 1;
  if (place.is_send) {
    Step step = ChunkOf(lane.channel, lane.rank, chunk);
    step.send_to = static_cast<int32_t>((lane.rank + distance) % n);
    step.load_kept = true;
    return step;
  }
  const uint64_t from = (lane.rank + n - distance) % n;
  Step step = ChunkOf(lane.channel, from, chunk);
  step.recv_from = static_cast<int32_t>(from);
  step.store = true;
  return step;
}

}  // namespace railyard
