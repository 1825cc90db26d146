// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs on a Slurm cluster whose nodes share the study's directory, by means of
// Slurm's commands sbatch, squeue and scancel.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/study/run_study.h"

namespace railyard {

struct SlurmOptions {
  std::vector<std::string> sbatch;  // further options of sbatch, e.g. "--partition=main"
  // The number of runs that one task makes, one after the other; 0 for the least number that makes
  // at most kSlurmTasks tasks.
  size_t runs_per_task = 0;
  std::optional<int64_t> time_limit_seconds;  // of each run
  // The arguments of the `railyard study --resume` that collects the results of the jobs. If there
  // are any, it becomes a job that follows the others, and the executor does not wait.
  std::vector<std::string> collecting{};
};

// Is thrown by the executor when the jobs, and the job that collects their results, are submitted.
class Detached : public std::exception {
 public:
  explicit Detached(std::string job) : job_(std::move(job)) {}
  const char* what() const noexcept override { return "the study goes on without this process"; }
  const std::string& job() const { return job_; }  // the one that collects

 private:
  std::string job_;
};

// The largest number of tasks of a study by default, so that short runs do not burden the
// scheduler.
inline constexpr size_t kSlurmTasks = 256;

// Returns an executor that submits the runs as tasks of job arrays and waits until they have ended.
// Runs that tasks left undone are submitted again, at most twice, and then reported as lost. If a
// signal requests the end, the executor cancels the jobs and throws Interrupted. It throws
// EnvironmentError if Slurm refuses, and Detached instead of waiting if `options.collecting` is not
// empty.
StudyExecutor SlurmExecutor(SlurmOptions options);

// Cancels the jobs that an earlier study in this directory has left behind, if any, and waits until
// they are gone. Throws EnvironmentError if they cannot be cancelled, and Interrupted if a signal
// requests the end meanwhile.
void CancelEarlierSlurmJobs(const std::string& directory);

}  // namespace railyard
