// SPDX-License-Identifier: GPL-2.0-only
// Parts of a job that are halted and begin again; GPUs whose speed changes while they compute.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/units/time_end.h"

namespace railyard {

// --- Speeds --------------------------------------------------------------------------------------

void ReplayEngine::Stop(uint32_t rank, uint32_t number, int64_t left_ps) {
  stopped_.push_back({.begin_ps = left_ps, .number = number, .rank = rank});
}

// When it would begin at this speed does not fit; another speed may come in time.
void ReplayEngine::NoteLate(uint32_t number, int64_t since_ps, int64_t left_ps, int64_t slowed_ps) {
  if (slowed_ps > kTimeEndPs - since_ps) {
    late_[number] = {.since_ps = since_ps, .left_ps = left_ps};
  } else {
    late_.erase(number);
  }
}

void ReplayEngine::SetGpuSpeed(uint32_t gpu, double speed) {
  const int64_t now_ps = engine_.NowPs();
  const double before = executor_->SpeedOfGpu(gpu);
  // What is left of the computation under way, at the GPU's own speed.
  std::vector<Pending> computing;
  const auto is_computing = [&](const Pending& pending) {
    return pending.rank == gpu && pending.begin_ps > now_ps;
  };
  for (Pending pending : pending_) {
    if (!is_computing(pending)) continue;
    const auto at_full_speed_ps = [&](int64_t ps) {
      return std::llround(static_cast<double>(ps) * (before == 0 ? 1 : before));
    };
    const auto late = late_.find(pending.number);
    if (late != late_.end()) {
      pending.begin_ps = late->second.left_ps - at_full_speed_ps(now_ps - late->second.since_ps);
      late_.erase(late);
    } else {
      pending.begin_ps = at_full_speed_ps(pending.begin_ps - now_ps);
    }
    computing.push_back(pending);
  }
  std::erase_if(pending_, is_computing);
  std::copy_if(stopped_.begin(), stopped_.end(), std::back_inserter(computing),
               [&](const Pending& pending) { return pending.rank == gpu; });
  std::erase_if(stopped_, [&](const Pending& pending) { return pending.rank == gpu; });
  for (Pending pending : computing) {
    if (speed == 0) {
      Stop(gpu, pending.number, pending.begin_ps);
      continue;
    }
    const int64_t slowed_ps = AtShareOfSpeedPs(pending.begin_ps, speed);
    NoteLate(pending.number, now_ps, pending.begin_ps, slowed_ps);
    pending.begin_ps = SumPs(now_ps, slowed_ps);
    pending_.push_back(pending);
  }
  std::make_heap(pending_.begin(), pending_.end());
  executor_->SetGpuSpeed(gpu, speed);
  ScheduleFirst();
}

// --- Restarts ------------------------------------------------------------------------------------

// Operations that were running keep their numbers for good: events that are under way name them.
void ReplayEngine::Halt(uint32_t id) {
  parts_[id].is_halted = true;
  for (const uint32_t connection : executor_->Close(id)) observer_.OnConnectionClosed(connection);
  const auto is_of_part = [&](const auto& call) { return IsOfPart(call, id); };
  for (Running& running : running_) {
    if (!is_of_part(running)) continue;
    running = {};
    running.rank = kNone;
    --running_count_;
    ++calls_ended_;
  }
  ForgetCallsOf(id);
  std::erase_if(pending_, is_of_part);
  std::make_heap(pending_.begin(), pending_.end());
  std::erase_if(stopped_, is_of_part);
  recording_.reset();
  ScheduleFirst();
}

int64_t ReplayEngine::last_running_begin_ps(uint32_t part) const {
  int64_t last_ps = 0;
  for (const Running& running : running_) {
    if (IsOfPart(running, part)) last_ps = std::max(last_ps, running.start_ps);
  }
  return last_ps;
}

// What was worked out for where the part's ranks were. Operations keep their numbers.
void ReplayEngine::Relocate(uint32_t part, const SwappedRanks& swapped) {
  for (const auto& [a, b] : swapped) std::swap(first_number_[a], first_number_[b]);
  for (uint32_t i = 0; i < communicators_.size(); ++i) {
    if (job_.PartOf(i) != part) continue;
    communicators_[i] = BuildCommunicator(i);
    executor_->connection_table().Relocate(
        i, {communicators_[i].gpus, communicators_[i].planner.get(), part});
  }
  part_of_rank_ = job_.PartsOfRanks();
  FindP2pCalls();
  DrawSkews();
  cache_ = {};
  RebuildPartitions();
  NumberPlans();
}

void ReplayEngine::RestartAt(uint32_t id, const std::vector<uint32_t>& first_of_rank,
                             const SwappedRanks& swapped) {
  PartProgress& part = parts_[id];
  SIM_CHECK(part.is_halted, "a part of the job restarts that was not halted");
  part.is_halted = false;
  if (!swapped.empty()) Relocate(id, swapped);
  operations_left_ -= part.calls_left;
  part.calls_left = 0;
  for (const uint32_t rank : job_.parts[id].global_ranks) {
    const std::vector<JobOperation>& program = job_.operations[rank];
    for (uint32_t index = first_of_rank[rank]; index < program.size(); ++index) {
      if (!has_begun_.empty()) has_begun_[first_number_[rank] + index] = false;
      if (program[index].is_compute()) continue;
      const uint32_t collective = job_.CollectiveOf(rank, program[index]);
      times_[collective] = {};
      if (rules_.keep_paths) paths_[collective] = {};
      ++part.calls_left;
    }
  }
  operations_left_ += part.calls_left;
  // The job may repeat itself now even if it did not before.
  cache_mode_ = rules_.cache;
  misses_ = 0;
  for (auto& [collective, watched] : watched_) {
    if (job_.PartOf(job_.collectives[collective].communicator) == id) watched = {};
  }
  const int64_t now_ps = engine_.NowPs();
  observer_.OnPartRestarted(id);
  order_.RestartAt(id, first_of_rank, now_ps,
                   [this, now_ps](uint32_t rank, uint32_t index, int64_t begin_ps) {
                     MayBeginAfter(now_ps, rank, index, begin_ps);
                   });
  ScheduleFirst();
}

}  // namespace railyard
