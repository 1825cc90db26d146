// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/explicit_check.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

namespace railyard {
namespace {

// A chunk's unit: with so many bytes no chunk is empty and none takes two passes.
constexpr uint64_t kCheckedChunkBytes = 16;

// Checks numbers alone. The peers of each lane are added to `lane_of` by direction, rank, channel
// and peer.
class NumberCheck {
 public:
  explicit NumberCheck(const ExplicitAlgorithm& algorithm) : algorithm_(algorithm) {}

  std::string WhatIsWrong(SchedulePlace& place) {
    if (algorithm_.rank_count < 2 || algorithm_.rank_count > kAlgorithmRanksMax) {
      return fmt::format("{} ranks (expected 2 to {})", algorithm_.rank_count, kAlgorithmRanksMax);
    }
    if (algorithm_.chunk_count < 1 || algorithm_.chunk_count > kAlgorithmChunksMax) {
      return fmt::format("{} chunks (expected 1 to {})", algorithm_.chunk_count,
                         kAlgorithmChunksMax);
    }
    if (algorithm_.channel_count < 1 || algorithm_.channel_count > kAlgorithmChannelsMax) {
      return fmt::format("{} channels (expected 1 to {})", algorithm_.channel_count,
                         kAlgorithmChannelsMax);
    }
    for (const auto& [at, lanes] : algorithm_.lanes) {
      for (uint32_t lane = 0; lane < lanes.size(); ++lane) {
        place.lane = {.rank = at.first, .channel = at.second, .lane = lane};
        if (at.first >= algorithm_.rank_count || at.second >= algorithm_.channel_count) {
          return "steps of a rank or channel that does not exist";
        }
        for (const ExplicitStep& step : lanes[lane]) {
          if (std::string wrong = OfStep(step, place.lane); !wrong.empty()) return wrong;
        }
      }
    }
    return {};
  }

 private:
  std::string OfStep(const ExplicitStep& step, const LaneId& lane) {
    const uint64_t chunks = algorithm_.BlockCount() * algorithm_.chunk_count;
    if (step.chunk >= chunks) {
      return fmt::format("chunk {} (expected at most {})", step.chunk, chunks - 1);
    }
    const bool is_local = step.step.recv_from == kNoPeer && step.step.send_to == kNoPeer;
    const uint64_t left = algorithm_.chunk_count - step.chunk % algorithm_.chunk_count;
    if (step.chunks < 1 || step.chunks > (is_local ? left : 1)) {
      return fmt::format("a step on {} chunks (expected 1 to {})", step.chunks,
                         is_local ? left : 1);
    }
    for (const bool sends : {false, true}) {
      const int32_t peer = sends ? step.step.send_to : step.step.recv_from;
      if (peer == kNoPeer) continue;
      if (peer < 0 || static_cast<uint32_t>(peer) >= algorithm_.rank_count) {
        return fmt::format("peer {} (expected a rank from 0 to {})", peer,
                           algorithm_.rank_count - 1);
      }
      const auto [user, is_new] =
          lane_of_.try_emplace({sends, lane.rank, lane.channel, peer}, lane.lane);
      if (!is_new && user->second != lane.lane) {
        return fmt::format(
            "lanes {} and {} {} rank {}: which of them gets a message is undefined "
            "(expected one lane, or another channel)",
            user->second, lane.lane, sends ? "send to" : "receive from", peer);
      }
    }
    return {};
  }

  const ExplicitAlgorithm& algorithm_;
  std::map<std::tuple<bool, RankIndex, uint32_t, int32_t>, uint32_t> lane_of_;
};

}  // namespace

std::string WhatIsWrong(const std::shared_ptr<const ExplicitAlgorithm>& algorithm,
                        SchedulePlace& place) {
  if (std::string wrong = NumberCheck(*algorithm).WhatIsWrong(place); !wrong.empty()) return wrong;
  const uint64_t block_bytes = algorithm->chunk_count * kCheckedChunkBytes;
  const ExplicitSchedule schedule(algorithm, block_bytes, kCheckedChunkBytes, {});
  const uint32_t slots = schedule.message_rule().in_flight_messages;
  const auto check = [&](uint32_t slots_each) {
    return CheckSchedule(
        {.kind = algorithm->kind,
         .block_bytes = block_bytes,
         .root = algorithm->root,
         .in_place = algorithm->is_in_place,
         .is_whole = true},
        algorithm->rank_count, [&](RankIndex) -> const CollectiveSchedule& { return schedule; },
        &place, slots_each);
  };
  if (const std::string wrong = check(0); !wrong.empty()) {
    return wrong + " (expected every rank to end with every contribution to its result once)";
  }
  // A second pass over the chunks cannot stall if the first one did not, because it finds all
  // connections empty.
  const std::string stalled = check(slots);
  if (stalled.empty()) return {};
  return fmt::format("{} (expected at most {} on a connection before the first is received)",
                     stalled, slots);
}

}  // namespace railyard
