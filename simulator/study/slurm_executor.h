// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs on a Slurm cluster whose nodes share the study's directory. Slurm's own
// commands do it: sbatch, squeue and scancel.
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
  // Runs that one task makes, one after the other; 0: as few as make kSlurmTasks tasks.
  size_t runs_per_task = 0;
  std::optional<int64_t> time_limit_seconds;  // of each run
  // The arguments of the `railyard study --resume` that collects what the jobs leave. If there are
  // any, it becomes a job that follows the others, and the executor does not wait.
  std::vector<std::string> collecting{};
};

// Thrown by the executor when the jobs and the one that collects are submitted.
class Detached : public std::exception {
 public:
  explicit Detached(std::string job) : job_(std::move(job)) {}
  const char* what() const noexcept override { return "the study goes on without this process"; }
  const std::string& job() const { return job_; }  // which collects

 private:
  std::string job_;
};

// Tasks that a study is divided into by default, so that short runs do not burden the scheduler.
inline constexpr size_t kSlurmTasks = 256;

// Returns an executor that submits the runs as tasks of job arrays, waits for their ends, submits
// again what tasks left undone, twice at most, and reports it as lost then. If a signal requests
// the end it cancels the jobs and throws Interrupted. Throws EnvironmentError if Slurm refuses, and
// Detached instead of waiting.
StudyExecutor SlurmExecutor(SlurmOptions options);

// Cancels the jobs that an earlier study in this directory has left behind, if any, and waits until
// they are gone.
void CancelEarlierSlurmJobs(const std::string& directory);

}  // namespace railyard
