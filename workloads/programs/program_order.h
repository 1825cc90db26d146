// SPDX-License-Identifier: GPL-2.0-only
// Determines when an operation of a rank may begin: it waits for the previous operation on its
// stream, for the previous operation of its communicator, and for the operation that it names.
// Computation is handled here: it ends after its duration, and the operations that wait for it may
// begin then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/units/time_end.h"
#include "simulator/units/units.h"
#include "workloads/job/job.h"

namespace railyard {

// Returns true if each operation of a rank's program that `is_one` selects waits for the end of the
// previous selected operation. Precondition: `is_one` selects no computation.
template <typename IsOne>
bool AreInTurn(const std::vector<JobOperation>& program, IsOne is_one) {
  uint32_t before = JobOperation::kNone;
  for (uint32_t index = 0; index < program.size(); ++index) {
    const JobOperation& operation = program[index];
    if (!is_one(operation)) continue;
    if (before != JobOperation::kNone && operation.stream != program[before].stream &&
        operation.after != before && operation.communicator != program[before].communicator) {
      return false;
    }
    before = index;
  }
  return true;
}

// Names the selected operation after another, and the shortest time from the end of that operation
// to its begin.
struct NextOperation {
  uint32_t index = 0;
  int64_t gap_ps = 0;
};

// Returns the selected operation after the selected operation `index`, or none if that is the last.
// Precondition: AreInTurn.
template <typename IsOne>
std::optional<NextOperation> NextOf(const std::vector<JobOperation>& program, uint32_t index,
                                    IsOne is_one) {
  const uint32_t stream = program[index].stream;
  int64_t gap_ps = 0;
  for (uint32_t next = index + 1; next < program.size(); ++next) {
    const JobOperation& operation = program[next];
    if (operation.stream == stream) gap_ps = SumPs(gap_ps, operation.compute_before_ps);
    if (is_one(operation)) return NextOperation{next, operation.stream == stream ? gap_ps : 0};
  }
  return std::nullopt;
}

// Tracks how far the ranks of a job have come in their programs. An operation that has not begun
// has state only if some of the operations for which it waits have ended.
//
// A trial is progress that can be undone: BeginTrial(), then End()s, then EndTrial().
class ProgramOrder {
 public:
  // `job` must outlive this.
  explicit ProgramOrder(const Job& job);

  // Calls may_begin(rank, index, begin_ps) for every operation, except computation, that waits for
  // no other.
  template <typename MayBegin>
  void Start(MayBegin may_begin) {
    for (GlobalRank rank{0}; rank < job_.rank_count; ++rank) {
      const auto& program = job_.operations[rank];
      const Links& links = LinksOf(rank);
      for (uint32_t index = 0; index < program.size(); ++index) {
        if (links.of[index].waits_for > 0) continue;
        Begin(rank, index, SumPs(StartOf(rank), program[index].compute_before_ps), may_begin);
        EndComputation(rank, may_begin);
      }
    }
  }

  // Discards all progress of a part and restarts it: the rank's operations before
  // `first_of_rank[rank]` have ended and no later one has begun. Calls may_begin for the later
  // operations that wait for no later one, with times counted from `now_ps` on. The part's ranks
  // may have been swapped since with ranks that belong to no part.
  template <typename MayBegin>
  void RestartAt(PartIndex part, const std::vector<uint32_t>& first_of_rank, int64_t now_ps,
                 MayBegin may_begin) {
    part_of_rank_ = job_.PartsOfRanks();
    std::unordered_map<uint32_t, std::vector<PartlyReleased>> released_of_program;
    for (GlobalRank rank{0}; rank < job_.rank_count; ++rank) {
      if (job_.operations[rank].empty()) partly_released_[rank].clear();
    }
    for (const GlobalRank rank : job_.parts[part].global_ranks) {
      const uint32_t program = job_.operations.program_of_rank(rank);
      const auto [it, is_new] = released_of_program.try_emplace(program);
      if (is_new) it->second = ReleasedBy(program, first_of_rank[rank], now_ps);
      partly_released_[rank].clear();
      std::copy_if(it->second.begin(), it->second.end(), std::back_inserter(partly_released_[rank]),
                   [](const PartlyReleased& released) { return released.waits_for > 0; });
      for (const PartlyReleased& released : it->second) {
        if (released.waits_for > 0) continue;
        Begin(rank, released.index, released.earliest_ps, may_begin);
        EndComputation(rank, may_begin);
      }
    }
  }

  // Ends operation `index` of the rank at `now_ps`: calls may_begin(rank, index, begin_ps) for the
  // operations, except computation, that waited only for it.
  template <typename MayBegin>
  void End(GlobalRank rank, uint32_t index, int64_t now_ps, MayBegin may_begin) {
    ReleaseFollowers(rank, index, now_ps, may_begin);
    EndComputation(rank, may_begin);
  }

  // Returns the last of the rank's operations that wait for operation `index`, or `index` itself.
  uint32_t LastFollowerOf(GlobalRank rank, uint32_t index) const;

  // Returns when the last computation of a part ends, over all operations that have begun.
  int64_t computed_until_ps(PartIndex part) const { return computed_until_ps_[part]; }

  void BeginTrial() {
    in_trial_ = true;
    ++trial_;
    computed_before_trial_ps_ = computed_until_ps_;
  }
  void EndTrial(bool keep);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kPrefetched = 6;  // number of operations ahead

  struct Link {
    uint32_t next_in_stream = kNone;
    uint32_t next_in_communicator = kNone;  // if that is not next_in_stream
    uint32_t first_follower = 0;            // index into followers of the operations that name it
    uint32_t waits_for : 2 = 0;             // number of operations for which it waits
    bool first_of_stream : 1 = false;
  };
  struct Links {
    std::vector<Link> of;  // by operation, and one more as the end of the last followers
    std::vector<uint32_t> followers;
  };
  // Describes an operation of whose predecessors some have ended.
  struct PartlyReleased {
    uint32_t index = 0;
    uint8_t waits_for = 0;
    int64_t earliest_ps = 0;
  };
  struct Computed {
    uint32_t index = 0;
    int64_t end_ps = 0;
  };

  static uint8_t WaitsFor(const Links& links, uint32_t index) {
    return static_cast<uint8_t>(links.of[index].waits_for);
  }
  static Links LinksOfProgram(const std::vector<JobOperation>& operations);
  const Links& LinksOf(GlobalRank rank) const {
    return links_[job_.operations.program_of_rank(rank)];
  }

  // Returns those of a program's operations from `first` on that wait for no operation, or for at
  // least one operation before `first`; operations before `first` have ended by `now_ps`.
  std::vector<PartlyReleased> ReleasedBy(uint32_t program, uint32_t first, int64_t now_ps) const;

  template <typename MayBegin>
  void ReleaseFollowers(GlobalRank rank, uint32_t index, int64_t now_ps, MayBegin& may_begin) {
    const Links& links = LinksOf(rank);
    const std::vector<JobOperation>& program = job_.operations[rank];
    // The ranks that progress side by side are too many for the processor's prefetcher.
    const size_t ahead = std::min<size_t>(index + kPrefetched, program.size() - 1);
    __builtin_prefetch(&program[ahead]);
    __builtin_prefetch(&links.of[ahead]);
    const Link& link = links.of[index];
    if (link.next_in_stream != kNone) {
      Release(rank, link.next_in_stream,
              SumPs(now_ps, program[link.next_in_stream].compute_before_ps), may_begin);
    }
    if (link.next_in_communicator != kNone) {
      // The first operation of its stream that names no other waits only for its communicator: its
      // gap began when its part did.
      const uint32_t next = link.next_in_communicator;
      const bool gap_is_free =
          links.of[next].first_of_stream && program[next].after == JobOperation::kNone;
      Release(rank, next,
              gap_is_free ? std::max(now_ps, SumPs(StartOf(rank), program[next].compute_before_ps))
                          : now_ps,
              may_begin);
    }
    for (uint32_t i = link.first_follower; i < links.of[index + 1].first_follower; ++i) {
      const uint32_t follower = links.followers[i];
      Release(rank, follower, SumPs(now_ps, program[follower].compute_before_ps), may_begin);
    }
  }

  template <typename MayBegin>
  void Release(GlobalRank rank, uint32_t index, int64_t earliest_ps, MayBegin& may_begin) {
    const uint8_t waits_for = WaitsFor(LinksOf(rank), index);
    if (waits_for > 1) {
      std::vector<PartlyReleased>& waiting = partly_released_[rank];
      if (in_trial_ && trial_of_rank_[rank] != trial_) {
        trial_of_rank_[rank] = trial_;
        before_trial_.emplace_back(rank, waiting);
      }
      const auto it = std::find_if(waiting.begin(), waiting.end(),
                                   [&](const PartlyReleased& part) { return part.index == index; });
      if (it == waiting.end()) {
        waiting.push_back({index, static_cast<uint8_t>(waits_for - 1), earliest_ps});
        return;
      }
      it->earliest_ps = std::max(it->earliest_ps, earliest_ps);
      if (--it->waits_for > 0) return;
      earliest_ps = it->earliest_ps;
      waiting.erase(it);
    }
    Begin(rank, index, earliest_ps, may_begin);
  }

  template <typename MayBegin>
  void Begin(GlobalRank rank, uint32_t index, int64_t begin_ps, MayBegin& may_begin) {
    if (job_.operations[rank][index].is_compute()) {
      // Its length is the gap that has passed already.
      int64_t& until_ps = computed_until_ps_[part_of_rank_[rank]];
      until_ps = std::max(until_ps, begin_ps);
      computed_.push_back({index, begin_ps});
    } else {
      may_begin(rank, index, begin_ps);
    }
  }

  // Computation is ended iteratively, because a chain of it may be long.
  template <typename MayBegin>
  void EndComputation(GlobalRank rank, MayBegin& may_begin) {
    while (!computed_.empty()) {
      const Computed computed = computed_.back();
      computed_.pop_back();
      ReleaseFollowers(rank, computed.index, computed.end_ps, may_begin);
    }
  }

  int64_t StartOf(GlobalRank rank) const { return job_.parts[part_of_rank_[rank]].start_ps; }

  const Job& job_;
  std::vector<PartIndex> part_of_rank_;
  std::vector<Links> links_;                                  // by program
  std::vector<std::vector<PartlyReleased>> partly_released_;  // by rank
  std::vector<Computed> computed_;                            // of the current rank
  std::vector<int64_t> computed_until_ps_;                    // by part
  bool in_trial_ = false;
  std::vector<int64_t> computed_before_trial_ps_;
  uint64_t trial_ = 0;                   // number of the current trial
  std::vector<uint64_t> trial_of_rank_;  // by rank: last trial in which partly_released_ was copied
  std::vector<std::pair<GlobalRank, std::vector<PartlyReleased>>> before_trial_;
};

}  // namespace railyard
