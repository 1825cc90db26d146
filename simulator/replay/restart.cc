// SPDX-License-Identifier: GPL-2.0-only
// A job that is halted and begins again; GPUs whose speed changes while they compute.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/replay_engine.h"

namespace railyard {

// --- Speeds --------------------------------------------------------------------------------------

void ReplayEngine::Stop(uint32_t rank, uint32_t number, int64_t left_ps) {
  stopped_.push_back({.begin_ps = left_ps, .number = number, .rank = rank});
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
    pending.begin_ps =
        std::llround(static_cast<double>(pending.begin_ps - now_ps) * (before == 0 ? 1 : before));
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
    pending.begin_ps = now_ps + std::llround(static_cast<double>(pending.begin_ps) / speed);
    pending_.push_back(pending);
  }
  std::make_heap(pending_.begin(), pending_.end());
  executor_->SetGpuSpeed(gpu, speed);
  ScheduleFirst();
}

// --- Restarts ------------------------------------------------------------------------------------

void ReplayEngine::Halt() {
  is_halted_ = true;
  executor_->Halt();
  recording_.reset();
  pending_.clear();
  stopped_.clear();
  scheduled_ = {.begin_ps = -1};
  running_.clear();
  free_running_ = kNone;
  running_count_ = 0;
  calls_ended_ = calls_started_;
}

int64_t ReplayEngine::last_running_begin_ps(uint32_t part) const {
  int64_t last_ps = 0;
  for (const Running& running : running_) {
    if (IsOfPart(running, part)) last_ps = std::max(last_ps, running.start_ps);
  }
  return last_ps;
}

bool ReplayEngine::IsGone() const {
  bool is_gone = network_.live_packets() == 0;
  engine_.ForEachPending([&](int64_t, EventClass event_class) {
    is_gone &= event_class == EventClass::kFault || event_class == EventClass::kRouting ||
               event_class == EventClass::kNs3 || event_class == EventClass::kHoldCheck ||
               event_class == EventClass::kLook || event_class == EventClass::kLoad;
  });
  return is_gone;
}

// What was worked out for where the ranks were.
void ReplayEngine::Relocate() {
  communicators_.clear();
  BuildCommunicators();
  part_of_rank_ = job_.PartsOfRanks();
  call_count_.clear();
  p2p_calls_.clear();
  CountCalls();
  DrawSkews();
  cache_ = {};
}

void ReplayEngine::RestartAt(const std::vector<uint32_t>& first_of_rank, bool moved) {
  SIM_CHECK(is_halted_ && IsGone(), "a job restarts while some of it is left");
  is_halted_ = false;
  counters_before_ += executor_->rdma().counters();
  port_counters_before_ += executor_->port_counters();
  std::vector<double> speeds(graph_.gpus().size());
  for (uint32_t gpu = 0; gpu < speeds.size(); ++gpu) speeds[gpu] = executor_->SpeedOfGpu(gpu);
  observer_.OnConnectionsGone();
  if (moved) Relocate();
  BuildExecutor();
  network_.SetSink(*executor_);
  operations_left_ = 0;
  for (PartProgress& part : parts_) part.calls_left = 0;
  for (uint32_t rank = 0; rank < job_.rank_count; ++rank) {
    const std::vector<JobOperation>& program = job_.operations[rank];
    for (uint32_t index = first_of_rank[rank]; index < program.size(); ++index) {
      if (program[index].is_compute()) continue;
      times_[program[index].collective] = {};
      if (rules_.keep_paths) paths_[program[index].collective] = {};
      ++operations_left_;
      ++parts_[part_of_rank_[rank]].calls_left;
    }
  }
  for (auto& [collective, watched] : watched_) watched = {};
  order_.RestartAt(
      first_of_rank, engine_.NowPs(),
      [this](uint32_t rank, uint32_t index, int64_t begin_ps) { MayBegin(rank, index, begin_ps); });
  for (uint32_t gpu = 0; gpu < speeds.size(); ++gpu) {
    if (speeds[gpu] != 1) SetGpuSpeed(gpu, speeds[gpu]);
  }
  ScheduleFirst();
}

RdmaCounters ReplayEngine::rdma_counters() const {
  RdmaCounters counters = counters_before_;
  counters += executor_->rdma().counters();
  return counters;
}

PortCounters ReplayEngine::port_counters() const {
  PortCounters counters = port_counters_before_;
  counters += executor_->port_counters();
  return counters;
}

}  // namespace railyard
