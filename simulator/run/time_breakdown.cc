// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/time_breakdown.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/units/units.h"

namespace railyard {
namespace {

using Interval = std::pair<int64_t, int64_t>;  // begin, end

int64_t Common(const Interval& a, const Interval& b) {
  return std::max<int64_t>(0, std::min(a.second, b.second) - std::max(a.first, b.first));
}

class RankFollower {
 public:
  RankFollower(const Job& job, const ReplayEngine& replay, GlobalRank rank)
      : job_(job), replay_(replay), rank_(rank), program_(job.operations[rank]) {
    const uint32_t program = job.operations.program_of_rank(rank);
    if (program < job.iteration_begins.size()) begins_ = job.iteration_begins[program];
    parts_.resize(begins_.size() + 1);
    end_ps_.resize(program_.size());
    now_ps_ = job.parts.front().start_ps;
  }

  std::vector<TimeBreakdown> Follow() {
    for (uint32_t index = 0; index < program_.size(); ++index) {
      while (iteration_ < begins_.size() && begins_[iteration_] <= index) ++iteration_;
      const JobOperation& operation = program_[index];
      if (!operation.is_compute() && replay_.ledger().calls_kept()[index].end_ps == kNeverPs)
        return {};
      if (operation.stream == 0) {
        FollowOwn(index);
      } else {
        FollowBeside(index);
      }
    }
    AddOverlap();
    return std::move(parts_);
  }

 private:
  // Every rank is in the call from then on.
  int64_t AllTherePs(uint32_t index) const {
    return replay_.ledger().times()[job_.CollectiveOf(rank_, program_[index])].last_start_ps;
  }
  const JobCollective& CollectiveOf(uint32_t index) const {
    return job_.collectives[job_.CollectiveOf(rank_, program_[index])];
  }
  TimeBreakdown& parts() { return parts_[iteration_]; }

  void FollowOwn(uint32_t index) {
    const JobOperation& operation = program_[index];
    if (operation.after != JobOperation::kNone) WaitFor(operation.after);
    if (operation.is_compute()) {
      parts().compute_ps += operation.compute_before_ps;
      now_ps_ += operation.compute_before_ps;
    } else {
      const auto [begin_ps, ended_ps] = replay_.ledger().calls_kept()[index];
      parts().compute_ps += begin_ps - now_ps_;
      const int64_t wait_ps =
          std::clamp<int64_t>(AllTherePs(index) - begin_ps, 0, ended_ps - begin_ps);
      parts().wait_ps += wait_ps;
      (IsOfExperts(index) ? parts().expert_ps : parts().tensor_ps) += ended_ps - begin_ps - wait_ps;
      now_ps_ = ended_ps;
    }
    end_ps_[index] = now_ps_;
  }

  // The own stream waits for an operation, of whichever stream.
  void WaitFor(uint32_t after) {
    const Interval idle(now_ps_, std::max(now_ps_, end_ps_[after]));
    now_ps_ = idle.second;
    if (idle.first == idle.second) return;
    idle_.push_back({idle, iteration_});
    const int64_t idle_ps = idle.second - idle.first;
    if (program_[after].is_compute()) {
      parts().wait_ps += idle_ps;
      return;
    }
    const int64_t there_ps = AllTherePs(after);
    if (CollectiveOf(after).kind == CollectiveKind::kSend && !CollectiveOf(after).is_all_to_all_v) {
      const int64_t bubble_ps = Common(idle, {idle.first, there_ps});
      parts().bubble_ps += bubble_ps;
      parts().pipeline_ps += idle_ps - bubble_ps;
      return;
    }
    const int64_t wait_ps = Common(idle, {replay_.ledger().calls_kept()[after].begin_ps, there_ps});
    parts().wait_ps += wait_ps;
    parts().data_ps += idle_ps - wait_ps;
  }

  void FollowBeside(uint32_t index) {
    const JobOperation& operation = program_[index];
    int64_t& stream_ps = stream_end_ps_[operation.stream];
    if (operation.is_compute()) {
      const int64_t after_ps =
          operation.after == JobOperation::kNone ? 0 : end_ps_[operation.after];
      stream_ps = std::max(stream_ps, after_ps) + operation.compute_before_ps;
    } else {
      const auto [begin_ps, ended_ps] = replay_.ledger().calls_kept()[index];
      const Interval runs(std::clamp(AllTherePs(index), begin_ps, ended_ps), ended_ps);
      beside_.push_back({runs, iteration_});
      stream_ps = ended_ps;
    }
    end_ps_[index] = stream_ps;
  }

  // Time in which at least one call beside ran, less that in which the rank waited for one.
  void AddOverlap() {
    std::sort(beside_.begin(), beside_.end());
    int64_t until_ps = 0;
    for (const auto& [runs, iteration] : beside_) {
      const Interval fresh(std::max(runs.first, until_ps), runs.second);
      if (fresh.first >= fresh.second) continue;
      until_ps = fresh.second;
      int64_t overlap_ps = Common(fresh, {0, now_ps_});
      auto idle = std::partition_point(idle_.begin(), idle_.end(), [&](const auto& entry) {
        return entry.first.second <= fresh.first;
      });
      for (; idle != idle_.end() && idle->first.first < fresh.second; ++idle) {
        overlap_ps -= Common(fresh, idle->first);
      }
      parts_[iteration].overlap_ps += overlap_ps;
    }
  }

  bool IsOfExperts(uint32_t index) const {
    const std::string& name = job_.communicators[CollectiveOf(index).communicator].name;
    return name.substr(0, name.find(' ')) == "expert";
  }

  const Job& job_;
  const ReplayEngine& replay_;
  const GlobalRank rank_;
  const std::vector<JobOperation>& program_;
  std::vector<uint32_t> begins_;  // of iterations but the first
  uint32_t iteration_ = 0;
  std::vector<TimeBreakdown> parts_;
  std::vector<int64_t> end_ps_;  // by operation
  int64_t now_ps_ = 0;           // how far the own stream has come
  std::map<uint32_t, int64_t> stream_end_ps_;
  std::vector<std::pair<Interval, uint32_t>> idle_;    // with their iterations
  std::vector<std::pair<Interval, uint32_t>> beside_;  // calls on other streams, all ranks there
};

}  // namespace

std::vector<TimeBreakdown> BreakdownOf(const Job& job, const ReplayEngine& replay,
                                       GlobalRank rank) {
  return RankFollower(job, replay, rank).Follow();
}

}  // namespace railyard
