// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_pairs.h"

#include <algorithm>
#include <vector>

namespace railyard {
namespace {

// Adds what one lane receives from each of its peers, by communicator ranks.
void AddLane(const CollectiveSchedule& schedule, const LaneId& lane, RankPairBytes& bytes) {
  const std::vector<LanePeer> listed = schedule.PeersOf(lane).recv_from;
  const auto add = [&](const LanePeer& peer, uint64_t received) {
    if (peer.use == ConnectionUse::kNetworkSum || peer.rank == lane.rank) return;
    bytes[{peer.rank, lane.rank}] += received;
  };
  const uint64_t steps = schedule.StepCount(lane);
  for (uint64_t i = 0; i < steps;) {
    const uint64_t alike = std::min(schedule.AlikeFrom(lane, i), steps - i);
    const Step step = schedule.StepAt(lane, i);
    i += alike;
    if (step.recv_from == kNoPeer || step.bytes == 0) continue;
    for (const LanePeer& peer : listed) {
      if (step.recv_from != kAllPeers && static_cast<uint32_t>(step.recv_from) != peer.rank) {
        continue;
      }
      add(peer, alike * step.bytes);
      if (step.recv_from != kAllPeers) break;
    }
  }
}

}  // namespace

RankPairBytes PairBytesOf(const CollectiveSchedule& schedule) {
  RankPairBytes bytes;
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (RankIndex rank{0}; rank < schedule.rank_count(); ++rank) {
      for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
        for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
          AddLane(schedule, {rank, channel, batch, lane}, bytes);
        }
      }
    }
  }
  return bytes;
}

}  // namespace railyard
