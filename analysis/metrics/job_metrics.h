// SPDX-License-Identifier: GPL-2.0-only
// What became of each job of a run, and what the others cost it.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/metrics/statistics.h"
#include "analysis/result/run_result.h"

namespace railyard {

// What a job got done. One that did not complete has lost everything.
struct JobOutcome {
  std::optional<double> goodput;   // fault-free time over time; nullopt without a paired run
  std::optional<int64_t> lost_ps;  // time beyond the fault-free time
  // The same, less what checkpoints take without any failure: time that training went on, for good,
  // over time ("effective training time", Llama 3, arXiv 2407.21783).
  std::optional<double> effective_training_time_ratio;
};
JobOutcome OutcomeOfJob(const RunResult& result, const JobResult& job);

// From its start to its end alone on the same GPUs and fabric, without faults; nullopt without such
// a run, or where it did not complete there.
std::optional<int64_t> AloneTimePs(const JobResult& job);

// Time of the job beside the others over its time alone, both without faults. nullopt without a
// pair of such runs.
std::optional<double> Interference(const RunResult& result, const JobResult& job);
// The same of durations of one collective.
std::optional<double> Interference(const RunResult& result, const CollectiveResult& collective);
// Of the job's collectives; nullopt: none has one.
std::optional<StretchStatistics> InterferenceOfCollectives(const RunResult& result, uint32_t job);

}  // namespace railyard
