// SPDX-License-Identifier: GPL-2.0-only
// Which operation of a rank may begin when: each waits for the one before it on its stream and for
// the one before it of its communicator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/job.h"

namespace railyard {

// How far the ranks of a job have come in their programs. Knows of operations that have not begun
// only where half of what they wait for is done.
//
// A trial is progress that may be taken back: BeginTrial(), then End()s, then EndTrial().
class ProgramOrder {
 public:
  // `job` must outlive this.
  explicit ProgramOrder(const Job& job);

  // Calls may_begin(rank, index, begin_ps) for every operation that waits for none.
  template <typename MayBegin>
  void Start(MayBegin may_begin) const {
    for (uint32_t rank = 0; rank < job_.rank_count; ++rank) {
      const auto& program = job_.operations[rank];
      const std::vector<Links>& links = LinksOf(rank);
      for (uint32_t index = 0; index < program.size(); ++index) {
        if (links[index].waits_for == 0) may_begin(rank, index, program[index].compute_before_ps);
      }
    }
  }

  // Operation `index` of the rank ended at `now_ps`: calls may_begin(rank, index, begin_ps) for
  // those that waited for it last.
  template <typename MayBegin>
  void End(uint32_t rank, uint32_t index, int64_t now_ps, MayBegin may_begin) {
    const Links& links = LinksOf(rank)[index];
    if (links.next_in_stream != kNone) {
      const int64_t earliest_ps =
          now_ps + job_.operations[rank][links.next_in_stream].compute_before_ps;
      Release(rank, links.next_in_stream, earliest_ps, now_ps, may_begin);
    }
    if (links.next_in_communicator != kNone) {
      // The first operation of its stream follows upon nothing else: its gap began at time zero.
      const uint32_t next = links.next_in_communicator;
      const int64_t earliest_ps =
          LinksOf(rank)[next].first_of_stream ? job_.operations[rank][next].compute_before_ps : 0;
      Release(rank, next, earliest_ps, now_ps, may_begin);
    }
  }

  void BeginTrial() { in_trial_ = true; }
  void EndTrial(bool keep);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Links {
    uint32_t next_in_stream = kNone;
    uint32_t next_in_communicator = kNone;  // where that is not next_in_stream
    uint8_t waits_for = 0;
    bool first_of_stream = false;
  };
  // That waits for one operation more.
  struct HalfReleased {
    uint32_t index = 0;
    int64_t earliest_ps = 0;
  };

  const std::vector<Links>& LinksOf(uint32_t rank) const {
    return links_[job_.operations.program_of_rank(rank)];
  }

  template <typename MayBegin>
  void Release(uint32_t rank, uint32_t index, int64_t earliest_ps, int64_t now_ps,
               MayBegin may_begin) {
    if (LinksOf(rank)[index].waits_for > 1) {
      std::vector<HalfReleased>& waiting = half_released_[rank];
      if (in_trial_) before_trial_.emplace_back(rank, waiting);
      const auto it = std::find_if(waiting.begin(), waiting.end(),
                                   [&](const HalfReleased& half) { return half.index == index; });
      if (it == waiting.end()) {
        waiting.push_back({index, earliest_ps});
        return;
      }
      earliest_ps = std::max(earliest_ps, it->earliest_ps);
      waiting.erase(it);
    }
    may_begin(rank, index, std::max(earliest_ps, now_ps));
  }

  const Job& job_;
  std::vector<std::vector<Links>> links_;                 // by program
  std::vector<std::vector<HalfReleased>> half_released_;  // by rank
  bool in_trial_ = false;
  std::vector<std::pair<uint32_t, std::vector<HalfReleased>>> before_trial_;
};

}  // namespace railyard
