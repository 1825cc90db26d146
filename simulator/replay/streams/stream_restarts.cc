// SPDX-License-Identifier: GPL-2.0-only
// Halts and restarts parts of a job, and changes the speed of GPUs while they compute.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "simulator/replay/streams/stream_runner.h"
#include "simulator/units/time_end.h"

namespace railyard {

// --- Speeds --------------------------------------------------------------------------------------

// An operation's computation waits for its GPU to continue.
void StreamRunner::Stop(GlobalRank rank, CallNumber number, int64_t left_ps) {
  stopped_.push_back({.begin_ps = left_ps, .number = number, .rank = rank});
}

// Notes a call that would begin beyond simulated time at this speed; another speed may come in
// time.
void StreamRunner::NoteLate(CallNumber number, int64_t since_ps, int64_t left_ps,
                            int64_t slowed_ps) {
  if (slowed_ps > kTimeEndPs - since_ps) {
    late_[number] = {.since_ps = since_ps, .left_ps = left_ps};
  } else {
    late_.erase(number);
  }
}

// Returns the rest of the computation before a pending call, at the GPU's full speed.
int64_t StreamRunner::TakeLeftPs(const Pending& pending, double speed) {
  const int64_t now_ps = engine_.NowPs();
  const auto at_full_speed_ps = [&](int64_t ps) {
    return std::llround(static_cast<double>(ps) * (speed == 0 ? 1 : speed));
  };
  const auto found = late_.find(pending.number);
  if (found == late_.end()) return at_full_speed_ps(pending.begin_ps - now_ps);
  const Late late = found->second;
  late_.erase(found);
  return late.left_ps - at_full_speed_ps(now_ps - late.since_ps);
}

void StreamRunner::ChangeSpeed(GpuIndex gpu, double before, double after) {
  const GlobalRank rank = RankOn(gpu);
  const int64_t now_ps = engine_.NowPs();
  std::vector<Pending> computing;
  const auto is_computing = [&](const Pending& pending) {
    return pending.rank == rank && pending.begin_ps > now_ps;
  };
  for (Pending pending : pending_) {
    if (!is_computing(pending)) continue;
    pending.begin_ps = TakeLeftPs(pending, before);
    computing.push_back(pending);
  }
  std::erase_if(pending_, is_computing);
  const auto is_of_gpu = [&](const Pending& pending) { return pending.rank == rank; };
  std::copy_if(stopped_.begin(), stopped_.end(), std::back_inserter(computing), is_of_gpu);
  std::erase_if(stopped_, is_of_gpu);
  for (Pending pending : computing) {
    if (after == 0) {
      Stop(rank, pending.number, pending.begin_ps);
      continue;
    }
    const int64_t slowed_ps = AtShareOfSpeedPs(pending.begin_ps, after);
    NoteLate(pending.number, now_ps, pending.begin_ps, slowed_ps);
    pending.begin_ps = SumPs(now_ps, slowed_ps);
    pending_.push_back(pending);
  }
  std::make_heap(pending_.begin(), pending_.end());
  ScheduleFirst();
}

// --- Halts and restarts --------------------------------------------------------------------------

void StreamRunner::ForgetPendingOf(PartIndex part) {
  const auto is_of_part = [&](const Pending& pending) { return IsOfPart(pending, part); };
  std::erase_if(pending_, is_of_part);
  std::make_heap(pending_.begin(), pending_.end());
  std::erase_if(stopped_, is_of_part);
  ScheduleFirst();
}

// Operations that were running keep their indices permanently, because pending events name them.
uint64_t StreamRunner::Halt(PartIndex part) {
  uint32_t halted = 0;
  for (Running& running : running_) {
    if (!IsOfPart(running, part)) continue;
    running = {};
    ++halted;
  }
  running_count_ -= halted;
  ForgetPendingOf(part);
  return halted;
}

uint64_t StreamRunner::Abort(PartIndex part) {
  ForgetPendingOf(part);
  return static_cast<uint64_t>(std::ranges::count_if(
      running_, [&](const Running& running) { return IsOfPart(running, part); }));
}

void StreamRunner::RestartAt(PartIndex part, const std::vector<uint32_t>& first_of_rank) {
  const int64_t now_ps = engine_.NowPs();
  order_.RestartAt(part, first_of_rank, now_ps,
                   [this, now_ps](GlobalRank rank, uint32_t index, int64_t begin_ps) {
                     MayBeginAfter(now_ps, {rank, index}, begin_ps);
                   });
  ScheduleFirst();
}

}  // namespace railyard
