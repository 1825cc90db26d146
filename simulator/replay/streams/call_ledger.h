// SPDX-License-Identifier: GPL-2.0-only
// Records when calls begin and end, whether they are simulated or replayed, and derives the times
// of collectives, of parts of the job and of results. It does not depend on how calls run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/execution/lanes/critical_path.h"
#include "simulator/replay/streams/call_hooks.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/replay_rule.h"
#include "simulator/units/job_ids.h"
#include "simulator/units/time_end.h"

namespace railyard {

// Holds the times of one collective; kNeverPs if the run ended before.
struct CollectiveTimes {
  int64_t first_start_ps = kNeverPs;
  int64_t last_start_ps = kNeverPs;  // once every rank has started
  int64_t last_end_ps = kNeverPs;    // once every rank has ended
  int64_t bound_ps = 0;
  uint32_t calls_started = 0;
  uint32_t calls_ended = 0;
  ReplayRule replayed_by = ReplayRule::kNone;
};

// Identifies a cause for which a rank waited in its calls: a retransmission between two ranks, or a
// rank that was slow or late.
struct RankWait {
  GlobalRank rank{};
  // The ranks of the transfer that was retransmitted; equal for a rank that was slow or late.
  GlobalRank source_rank{};
  GlobalRank destination_rank{};
  auto operator<=>(const RankWait&) const = default;
};
struct RankWaitTotals {
  uint64_t calls = 0;
  int64_t waited_ps = 0;
};

// Holds two independent sums of hashes.
using TimesHashSums = std::array<uint64_t, 2>;

class CallLedger {
 public:
  // Holds the start and end of a call of the kept rank; kNeverPs for computation and for calls that
  // have not ended.
  struct CallSpan {
    int64_t begin_ps = 0;
    int64_t end_ps = 0;
  };
  // Holds the progress of a part of the job.
  struct PartProgress {
    uint64_t calls_left = 0;
    int64_t end_ps = 0;        // of its last call so far, or when it was aborted
    std::string abort_reason;  // empty if it was not aborted
    bool is_halted = false;    // until it restarts
  };

  // All references must outlive this. With `keep_paths`, paths() and waits() are filled.
  CallLedger(const CallTable& calls, PlanCache& plans, ProgressWatch& progress, bool keep_paths);

  // Keeps the start and end of each call of that rank (calls_kept()). Must be called before the
  // first call.
  void KeepCallsOf(GlobalRank rank);
  CallHooks& hooks() { return hooks_; }
  const CallHooks& hooks() const { return hooks_; }
  // Records which operations have begun (HasBegun()). Must be called before the first call.
  void KeepBegun() { has_begun_.resize(calls_.count()); }

  // --- Calls -------------------------------------------------------------------------------------
  void NoteBegin(const Call& call, int64_t begin_ps);
  // Records the end of a call. A collective that took less than its bound is a SIM_CHECK.
  // Precondition: the call has begun.
  void NoteEnd(const Call& call, int64_t begin_ps, int64_t end_ps, const CriticalPath& path);
  void NoteReplayed(CollectiveIndex collective, ReplayRule rule) {
    times_[collective].replayed_by = rule;
  }
  // Prefetches the memory that NoteBegin() accesses.
  void Prefetch(const Call& call) const {
    __builtin_prefetch(&times_[calls_.CollectiveNumberOf(call)], 1);
  }

  // --- Parts of the job --------------------------------------------------------------------------
  // `running` is the number of calls of the part that have begun and will not end.
  void Halt(PartIndex part, uint64_t running);
  void Abort(PartIndex part, const std::string& why, int64_t now_ps, uint64_t running);
  // Restarts a halted part at each rank's operation of that number.
  void Restart(PartIndex part, const std::vector<uint32_t>& first_of_rank);

  // --- Records -----------------------------------------------------------------------------------
  const std::vector<CollectiveTimes>& times() const { return times_; }
  bool HasEnded(CollectiveIndex collective) const {
    return times_[collective].calls_ended >= call_count_[collective];
  }
  const std::vector<CallSpan>& calls_kept() const { return calls_kept_; }
  // Returns, by collective, the path of its last rank's end, from its first rank's start on; empty
  // if paths are not kept.
  const std::vector<CriticalPath>& paths() const { return paths_; }
  const std::map<RankWait, RankWaitTotals>& waits() const { return waits_; }
  const std::vector<PartProgress>& parts() const { return parts_; }
  bool IsAborted(PartIndex part) const { return !parts_[part].abort_reason.empty(); }
  // Returns true if some part has operations left and is neither halted nor aborted.
  bool IsAnyPartUp() const;
  // Precondition: KeepBegun().
  bool HasBegun(const Call& call) const { return has_begun_[calls_.NumberOf(call)]; }
  uint64_t calls_started() const { return calls_started_; }
  uint64_t calls_ended() const { return calls_ended_; }
  uint64_t calls_left() const { return calls_left_; }
  uint64_t collectives_ended() const { return collectives_ended_; }
  uint64_t collectives_replayed() const { return collectives_replayed_; }
  // Returns sums, over the calls that ended, of hashes of their start and end, which do not depend
  // on the order.
  const TimesHashSums& ended_hash() const { return ended_hash_; }
  void AddToHash(const Call& call, int64_t begin_ps, int64_t end_ps, TimesHashSums& sums) const;

 private:
  void CountCalls();
  void NotePath(const Call& call, int64_t begin_ps, int64_t end_ps, CriticalPath path);
  void FinishCollective(CollectiveIndex collective, int64_t end_ps);

  const CallTable& calls_;
  PlanCache& plans_;
  ProgressWatch& progress_;
  std::vector<CollectiveTimes> times_;
  std::vector<uint32_t> call_count_;  // by collective
  std::vector<CriticalPath> paths_;   // empty if they are not kept
  std::map<RankWait, RankWaitTotals> waits_;
  TimesHashSums ended_hash_{};
  GlobalRank kept_rank_ = GlobalRank::kNone;
  std::vector<CallSpan> calls_kept_;
  std::vector<bool> has_begun_;  // by number of the operation
  std::vector<PartProgress> parts_;
  uint64_t calls_started_ = 0;
  uint64_t calls_ended_ = 0;
  uint64_t collectives_ended_ = 0;
  uint64_t collectives_replayed_ = 0;
  uint64_t calls_left_ = 0;
  CallHooks hooks_;
  bool keep_paths_;
};

}  // namespace railyard
