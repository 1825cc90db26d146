// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/job_metrics.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace railyard {
namespace {

// "1" exactly where both are the same.
std::optional<double> Ratio(int64_t time_ps, int64_t over_ps) {
  if (time_ps <= 0 || over_ps <= 0) return std::nullopt;
  return static_cast<double>(time_ps) / static_cast<double>(over_ps);
}

bool IsFaultFree(const RunResult& result) { return !result.has_baseline && result.faults.empty(); }

}  // namespace

JobOutcome OutcomeOfJob(const RunResult& result, const JobResult& job) {
  if (job.status != RunStatus::kCompleted) {
    const bool was_aborted = job.status == RunStatus::kJobAborted;
    const int64_t until_ps = was_aborted && job.end_ps > 0 ? job.end_ps : result.simulated_time_ps;
    return {.goodput = 0.0,
            .lost_ps = std::max<int64_t>(0, until_ps - job.start_ps),
            .effective_training_time_ratio = 0.0};
  }
  if (!result.has_baseline && !result.faults.empty()) return {};
  // It did not end in the fault-free run.
  if (result.has_baseline && job.baseline_end_ps == 0) return {};
  const int64_t time_ps = job.end_ps - job.start_ps;
  const int64_t fault_free_ps = result.has_baseline ? job.baseline_end_ps - job.start_ps : time_ps;
  JobOutcome outcome;
  outcome.lost_ps = time_ps - fault_free_ps;
  if (time_ps > 0) {
    outcome.goodput = static_cast<double>(fault_free_ps) / static_cast<double>(time_ps);
    outcome.effective_training_time_ratio =
        static_cast<double>(fault_free_ps - job.restart.save_ps) / static_cast<double>(time_ps);
  }
  return outcome;
}

std::optional<int64_t> AloneTimePs(const JobResult& job) {
  if (job.alone_end_ps == 0) return std::nullopt;
  return job.alone_end_ps - job.start_ps;
}

std::optional<double> Interference(const RunResult& result, const JobResult& job) {
  int64_t end_ps = 0;
  if (result.has_baseline) end_ps = job.baseline_end_ps;
  if (IsFaultFree(result) && job.status == RunStatus::kCompleted) end_ps = job.end_ps;
  const std::optional<int64_t> alone_ps = AloneTimePs(job);
  return alone_ps ? Ratio(end_ps - job.start_ps, *alone_ps) : std::nullopt;
}

std::optional<double> Interference(const RunResult& result, const CollectiveResult& collective) {
  int64_t duration_ps = 0;
  if (result.has_baseline) duration_ps = collective.baseline_duration_ps;
  if (IsFaultFree(result) && collective.completed) duration_ps = collective.duration_ps();
  return Ratio(duration_ps, collective.alone_duration_ps);
}

std::optional<StretchStatistics> InterferenceOfCollectives(const RunResult& result, uint32_t job) {
  std::vector<double> ratios;
  for (const CollectiveResult& collective : result.collectives) {
    if (collective.job != job) continue;
    if (const auto ratio = Interference(result, collective)) ratios.push_back(*ratio);
  }
  return SummarizeStretches(std::move(ratios));
}

}  // namespace railyard
