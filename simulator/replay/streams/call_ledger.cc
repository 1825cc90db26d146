// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/call_ledger.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"

namespace railyard {

CallLedger::CallLedger(const CallTable& calls, PlanCache& plans, ProgressWatch& progress,
                       bool keep_paths)
    : calls_(calls),
      plans_(plans),
      progress_(progress),
      times_(calls.job().collectives.size()),
      parts_(calls.job().parts.size()),
      keep_paths_(keep_paths) {
  CountCalls();
  if (keep_paths) paths_.resize(times_.size());
}

void CallLedger::CountCalls() {
  const Job& job = calls_.job();
  call_count_.resize(job.collectives.size());
  const auto ranks = job.called.RanksOfPrograms();
  for (uint32_t list = 0; list < ranks.size(); ++list) {
    const std::vector<CollectiveIndex>& called = job.called.program(list);
    for (const CollectiveIndex collective : called) {
      call_count_[collective] += static_cast<uint32_t>(ranks[list].size());
    }
    if (called.empty()) continue;
    for (const GlobalRank rank : ranks[list])
      parts_[calls_.PartOf(rank)].calls_left += called.size();
  }
  for (const uint32_t calls : call_count_) calls_left_ += calls;
}

void CallLedger::KeepCallsOf(GlobalRank rank) {
  kept_rank_ = rank;
  calls_kept_.assign(calls_.job().operations[rank].size(), {kNeverPs, kNeverPs});
}

// --- Calls ---------------------------------------------------------------------------------------

void CallLedger::NoteBegin(const Call& call, int64_t begin_ps) {
  ++calls_started_;
  if (!has_begun_.empty()) has_begun_[calls_.NumberOf(call)] = true;
  const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
  CollectiveTimes& times = times_[collective];
  if (times.calls_started == 0) {
    times.first_start_ps = begin_ps;
    if (progress_.IsWatched(collective)) progress_.Begin(collective);
    if (hooks_.on_collective) hooks_.on_collective(collective, false);
  }
  if (++times.calls_started == call_count_[collective]) times.last_start_ps = begin_ps;
}

void CallLedger::NoteEnd(const Call& call, int64_t begin_ps, int64_t end_ps,
                         const CriticalPath& path) {
  AddToHash(call, begin_ps, end_ps, ended_hash_);
  if (keep_paths_) NotePath(call, begin_ps, end_ps, path);
  if (call.rank == kept_rank_) calls_kept_[call.index] = {begin_ps, end_ps};
  const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
  if (hooks_.on_call_end) hooks_.on_call_end(call, begin_ps, end_ps);
  if (++times_[collective].calls_ended == call_count_[collective]) {
    FinishCollective(collective, end_ps);
  }
  PartProgress& part = parts_[calls_.PartOf(call.rank)];
  part.end_ps = end_ps;
  --part.calls_left;
  ++calls_ended_;
  --calls_left_;
}

void CallLedger::NotePath(const Call& call, int64_t begin_ps, int64_t end_ps, CriticalPath path) {
  const CollectiveIndex id = calls_.CollectiveNumberOf(call);
  // Paths begin as kernels run; a rank that has nothing to do has none.
  const int64_t launch_ps = plans_.CostsOf(id).launch_latency_ps;
  if (path.origin_gpu == GpuIndex::kNone) path.origin_ps = begin_ps + launch_ps;
  path.ExtendTo(end_ps, PathCause::kWork);
  path.Spend(PathCause::kWork, launch_ps);
  path.origin_ps -= launch_ps;
  const auto begin_at = [&path](int64_t time_ps) {
    const int64_t late_ps = path.origin_ps - time_ps;
    if (late_ps <= 0) return;
    path.origin_ps = time_ps;
    path.Spend(PathCause::kSlowPeer, late_ps);
    path.Blame(path.origin_gpu, path.origin_gpu, late_ps);
  };
  begin_at(begin_ps);
  const int64_t waited_ps = path.SpentPs(PathCause::kTimeout) +
                            path.SpentPs(PathCause::kRetransmission) +
                            path.SpentPs(PathCause::kSlowPeer);
  constexpr int64_t kShareMin = 100;  // a wait below 1 / kShareMin of a call is not reported
  if (waited_ps * kShareMin >= end_ps - begin_ps && path.worst_from != GpuIndex::kNone &&
      path.worst_from != call.gpu()) {
    RankWaitTotals& totals = waits_[{call.rank, RankOn(path.worst_from), RankOn(path.worst_to)}];
    ++totals.calls;
    totals.waited_ps += waited_ps;
  }
  begin_at(times_[id].first_start_ps);
  if (path.EndsAfter(paths_[id])) paths_[id] = path;
}

void CallLedger::FinishCollective(CollectiveIndex collective, int64_t end_ps) {
  CollectiveTimes& times = times_[collective];
  times.last_end_ps = end_ps;
  ++collectives_ended_;
  if (times.replayed_by != ReplayRule::kNone) ++collectives_replayed_;
  times.bound_ps = plans_.BoundOf(collective);
  SIM_CHECK(times.last_end_ps - times.first_start_ps >= times.bound_ps,
            fmt::format("collective {} took {} ps, less than its bound of {} ps", collective,
                        times.last_end_ps - times.first_start_ps, times.bound_ps));
  if (hooks_.on_collective) hooks_.on_collective(collective, true);
}

void CallLedger::AddToHash(const Call& call, int64_t begin_ps, int64_t end_ps,
                           TimesHashSums& sums) const {
  constexpr TimesHashSums kSeeds = {0x5261696c79617264ULL, 0x66696e6765727072ULL};
  for (size_t i = 0; i < sums.size(); ++i) {
    uint64_t hash = Mix64(kSeeds[i] ^ calls_.NumberOf(call));
    hash = Mix64(hash ^ static_cast<uint64_t>(begin_ps));
    sums[i] += Mix64(hash ^ static_cast<uint64_t>(end_ps));
  }
}

// --- Parts of the job ----------------------------------------------------------------------------

void CallLedger::Halt(PartIndex part, uint64_t running) {
  parts_[part].is_halted = true;
  calls_ended_ += running;
}

void CallLedger::Abort(PartIndex id, const std::string& why, int64_t now_ps, uint64_t running) {
  PartProgress& part = parts_[id];
  part.abort_reason = why;
  part.end_ps = now_ps;
  calls_left_ -= part.calls_left;
  part.calls_left = 0;
  calls_ended_ += running;
}

bool CallLedger::IsAnyPartUp() const {
  return std::ranges::any_of(parts_, [](const PartProgress& part) {
    return part.calls_left > 0 && !part.is_halted && part.abort_reason.empty();
  });
}

void CallLedger::Restart(PartIndex id, const std::vector<uint32_t>& first_of_rank) {
  const Job& job = calls_.job();
  PartProgress& part = parts_[id];
  SIM_CHECK(part.is_halted, "a part of the job restarts that was not halted");
  part.is_halted = false;
  calls_left_ -= part.calls_left;
  part.calls_left = 0;
  for (const GlobalRank rank : job.parts[id].global_ranks) {
    const std::vector<JobOperation>& program = job.operations[rank];
    for (uint32_t index = first_of_rank[rank]; index < program.size(); ++index) {
      const Call call{rank, index};
      if (!has_begun_.empty()) has_begun_[calls_.NumberOf(call)] = false;
      if (program[index].is_compute()) continue;
      const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
      times_[collective] = {};
      if (keep_paths_) paths_[collective] = {};
      ++part.calls_left;
    }
  }
  calls_left_ += part.calls_left;
  progress_.Restart(id);
}

}  // namespace railyard
