// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/progress_watch.h"

#include <algorithm>
#include <cstddef>

#include "workloads/collectives/schedule.h"

namespace railyard {

void ProgressWatch::Begin(CollectiveIndex id) {
  callbacks_.on_progress(id, 0);
  if (job_.collectives[id].is_p2p()) return;
  const CollectiveSchedule& schedule = plans_.ScheduleOf(id);
  uint64_t& total_bytes = watched_[id].total_bytes;
  const auto add_lane = [&](const LaneId& lane) {
    const size_t peers = schedule.PeersOf(lane).recv_from.size();
    const uint64_t steps = schedule.StepCount(lane);
    for (uint64_t i = 0; i < steps;) {
      const uint64_t alike = std::min(schedule.AlikeFrom(lane, i), steps - i);
      const Step step = schedule.StepAt(lane, i);
      if (step.recv_from != kNoPeer) {
        total_bytes += alike * step.bytes * (step.recv_from == kAllPeers ? peers : 1);
      }
      i += alike;
    }
  };
  for (RankIndex rank{0}; rank < schedule.rank_count(); ++rank) {
    ForEachLaneOf(schedule, rank, add_lane);
  }
  callbacks_.count_payload(id);
}

void ProgressWatch::OnPayloadTaken(CollectiveIndex collective, uint64_t bytes) {
  Watched& watched = watched_[collective];
  watched.taken_bytes += bytes;
  callbacks_.on_progress(collective, static_cast<double>(watched.taken_bytes) /
                                         static_cast<double>(watched.total_bytes));
}

void ProgressWatch::Restart(PartIndex part) {
  for (auto& [collective, watched] : watched_) {
    if (job_.PartOf(job_.collectives[collective].communicator) == part) watched = {};
  }
}

}  // namespace railyard
