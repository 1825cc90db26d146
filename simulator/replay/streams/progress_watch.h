// SPDX-License-Identifier: GPL-2.0-only
// How far collectives have come that something waits for: what part of their payload GPUs have
// taken in.
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
    // From now on OnPayloadTaken() is to be called for the collective.
    std::function<void(uint32_t collective)> count_payload;
    // The collective begins, with 0, or so much of its payload has been taken in; 1: all.
    std::function<void(uint32_t collective, double progress)> tell;
  };
  // `job` and `plans` must outlive this.
  ProgressWatch(const Job& job, PlanCache& plans, Callbacks callbacks)
      : job_(job), plans_(plans), callbacks_(std::move(callbacks)) {}

  // Progress beyond the collective's begin is told only where it is planned as a whole.
  void Watch(uint32_t collective) { watched_[collective] = {}; }
  bool IsWatched(uint32_t collective) const {
    return !watched_.empty() && watched_.contains(collective);
  }
  // Whether one is watched that has not ended: has_ended(collective).
  template <typename HasEnded>
  bool IsAnyUnderWay(HasEnded has_ended) const {
    for (const auto& [collective, bytes] : watched_) {
      if (!has_ended(collective)) return true;
    }
    return false;
  }

  // Precondition: the collective is watched, and its first call begins.
  void Begin(uint32_t collective);
  void OnPayloadTaken(uint32_t collective, uint64_t bytes);
  // A part of the job begins again: nothing of its collectives has been taken in.
  void Restart(uint32_t part);

 private:
  struct Watched {
    uint64_t total_bytes = 0;
    uint64_t taken_bytes = 0;
  };

  const Job& job_;
  PlanCache& plans_;
  Callbacks callbacks_;
  std::map<uint32_t, Watched> watched_;  // by collective
};

}  // namespace railyard
