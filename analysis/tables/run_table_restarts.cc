// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/run_table_restarts.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "analysis/metrics/job_metrics.h"
#include "analysis/tables/figure_text.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr size_t kRestartedJobsShown = 16;

bool MayRestart(const JobResult& job) {
  return job.restart.restarts > 0 || job.restart.save_ps > 0;
}

// "restarted 4 times; goodput 99.6 %, effective training time 98.5 %"
std::string OutcomeText(const RunResult& result, const JobResult& job) {
  const uint32_t restarts = job.restart.restarts;
  std::string text = restarts == 0
                         ? "was not restarted"
                         : "restarted " + (restarts == 1 ? "once" : PluralText(restarts, "time"));
  const JobOutcome outcome = OutcomeOfJob(result, job);
  if (outcome.goodput) {
    text += fmt::format("; goodput {}, effective training time {}", PercentText(*outcome.goodput),
                        PercentText(*outcome.effective_training_time_ratio));
  }
  return text;
}

void PrintJob(const RunResult& result, const JobResult& job, TerminalText& text) {
  text.Item(fmt::format("{} {}", job.name, OutcomeText(result, job)));
  const RestartResult& restart = job.restart;
  if (restart.restarts > 0) {
    const int64_t lost_ps =
        restart.rework_ps + restart.detection_ps + restart.requeue_ps + restart.load_ps;
    text.Detail(
        fmt::format("restarts took {}: {} of rework since the last checkpoint, {} until "
                    "all ranks had ended, {} in the queue, {} of loading checkpoints",
                    FormatDuration(lost_ps), FormatDuration(restart.rework_ps),
                    FormatDuration(restart.detection_ps), FormatDuration(restart.requeue_ps),
                    FormatDuration(restart.load_ps)));
  }
  if (restart.save_ps > 0) {
    text.Detail(fmt::format("saving checkpoints takes {} without any failure",
                            FormatDuration(restart.save_ps)));
  }
  if (restart.servers_replaced > 0) {
    text.Detail(
        fmt::format("{} replaced by spares", PluralText(restart.servers_replaced, "server")));
  }
  if (!restart.last_failure.empty()) {
    text.Detail("last failure: " + restart.last_failure.substr(0, restart.last_failure.find('\n')));
  }
}

}  // namespace

void PrintRestarts(const RunResult& result, TerminalText& text) {
  std::vector<const JobResult*> jobs;
  for (const JobResult& job : result.jobs) {
    if (MayRestart(job)) jobs.push_back(&job);
  }
  if (jobs.empty()) return;
  text.Section("Restarts");
  const size_t shown = std::min(jobs.size(), kRestartedJobsShown);
  for (size_t i = 0; i < shown; ++i) PrintJob(result, *jobs[i], text);
  text.AndMore(jobs.size() - shown, "job");
}

}  // namespace railyard
