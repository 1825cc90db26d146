// SPDX-License-Identifier: GPL-2.0-only
// Computes metrics of each job of a run: how it ended, and how much the other jobs slowed it down.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/metrics/statistics.h"
#include "analysis/result/run_result.h"

namespace railyard {

// Describes the useful work of a job. A job that did not complete has lost all of its work.
struct JobOutcome {
  std::optional<double> goodput;   // fault-free time over time; nullopt without a paired run
  std::optional<int64_t> lost_ps;  // time beyond the fault-free time
  // The goodput minus the share of time that checkpoints take without any failure: the share of
  // time in which training made lasting progress ("effective training time", Llama 3, arXiv
  // 2407.21783).
  std::optional<double> effective_training_time_ratio;
};
JobOutcome OutcomeOfJob(const RunResult& result, const JobResult& job);

// Returns the time from the job's start to its end when it ran alone on the same GPUs and fabric,
// without faults; nullopt if there was no such run or it did not complete.
std::optional<int64_t> AloneTimePs(const JobResult& job);

// Returns the job's time with the other jobs over its time alone, both without faults; nullopt if
// one of the two runs is missing.
std::optional<double> Interference(const RunResult& result, const JobResult& job);
// Returns the same ratio for the durations of one collective.
std::optional<double> Interference(const RunResult& result, const CollectiveResult& collective);
// Summarizes the ratios of the job's collectives; nullopt if none has one.
std::optional<StretchStatistics> InterferenceOfCollectives(const RunResult& result, uint32_t job);

}  // namespace railyard
