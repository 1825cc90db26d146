// SPDX-License-Identifier: GPL-2.0-only
// Tracks the progress of observed collectives: the share of their payload that GPUs have received.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "simulator/replay/streams/plan_cache.h"
#include "workloads/job/job.h"

namespace railyard {

class ProgressWatch {
 public:
  struct Callbacks {
    // Requests calls of OnPayloadTaken() for the collective from now on.
    std::function<void(CollectiveIndex collective)> count_payload;
    // Reports the share of the collective's payload that was received, from 0, when it begins, to
    // 1.
    std::function<void(CollectiveIndex collective, double progress)> on_progress;
  };
  // `job` and `plans` must outlive this.
  ProgressWatch(const Job& job, PlanCache& plans, Callbacks callbacks)
      : job_(job), plans_(plans), callbacks_(std::move(callbacks)) {}

  // Observes a collective. Progress after its start is reported only if it is planned as a whole.
  void Watch(CollectiveIndex collective) { watched_[collective] = {}; }
  bool IsWatched(CollectiveIndex collective) const {
    return !watched_.empty() && watched_.contains(collective);
  }
  // Returns true if an observed collective has not ended, according to has_ended(collective).
  template <typename HasEnded>
  bool IsAnyUnderWay(HasEnded has_ended) const {
    for (const auto& [collective, bytes] : watched_) {
      if (!has_ended(collective)) return true;
    }
    return false;
  }

  // Reports the start of a collective. Precondition: the collective is observed, and its first call
  // begins.
  void Begin(CollectiveIndex collective);
  // Must be called when a receiver has taken payload of an observed collective; reports its
  // progress.
  void OnPayloadTaken(CollectiveIndex collective, uint64_t bytes);
  // Resets the progress of a part of the job that restarts.
  void Restart(PartIndex part);

 private:
  struct Watched {
    uint64_t total_bytes = 0;
    uint64_t taken_bytes = 0;
  };

  const Job& job_;
  PlanCache& plans_;
  Callbacks callbacks_;
  std::map<CollectiveIndex, Watched> watched_;  // by collective
};

}  // namespace railyard
