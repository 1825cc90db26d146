// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/baseline.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

Baseline::Baseline(std::string name, size_t collective_count, size_t job_count)
    : name_(std::move(name)),
      count_(collective_count),
      job_count_(job_count),
      bytes_(sizeof(Header) + collective_count * sizeof(CollectiveOutcome) +
             job_count * sizeof(int64_t)) {
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) {
    throw EnvironmentError("no memory to share with " + name_ + ": " + std::strerror(errno));
  }
}

Baseline::~Baseline() {
  child_.End();
  munmap(memory_, bytes_);
}

CollectiveOutcome* Baseline::collectives() const {
  return reinterpret_cast<CollectiveOutcome*>(static_cast<char*>(memory_) + sizeof(Header));
}

bool Baseline::Fork() {
  is_child_ = child_.Fork(name_);
  return is_child_;
}

void Baseline::Finish(const Outcome& outcome) {
  std::copy(outcome.collectives.begin(), outcome.collectives.end(), collectives());
  std::copy(outcome.job_end_ps.begin(), outcome.job_end_ps.end(), job_ends());
  header()->simulated_time_ps = outcome.simulated_time_ps;
  header()->cpu_seconds = outcome.cpu_seconds;
  header()->finished = 1;
  // Nothing of the parent's may be flushed or destroyed twice.
  _exit(0);
}

void Baseline::LeaveWithoutMemory() {
  header()->without_memory = 1;
  _exit(1);
}

std::optional<Baseline::Outcome> Baseline::Wait(const std::function<void()>& on_wake) {
  const std::optional<int> status = child_.Wait(on_wake);
  if (!status) {
    child_.End();
    return std::nullopt;
  }
  if (header()->without_memory == 1) throw EnvironmentError(name_ + ": not enough memory");
  if (header()->finished != 1) {
    throw EnvironmentError(*status > 128
                               ? fmt::format("{} was killed by signal {}", name_, *status - 128)
                               : fmt::format("{} ended with status {}", name_, *status));
  }
  Outcome outcome;
  outcome.collectives.assign(collectives(), collectives() + count_);
  outcome.job_end_ps.assign(job_ends(), job_ends() + job_count_);
  outcome.simulated_time_ps = header()->simulated_time_ps;
  outcome.cpu_seconds = header()->cpu_seconds;
  return outcome;
}

void Baseline::ReportProgress(const Progress& progress) {
  header()->progress_time_ps = progress.simulated_time_ps;
  header()->progress_share = progress.share_done;
}

Baseline::Progress Baseline::progress() const {
  return {.simulated_time_ps = header()->progress_time_ps, .share_done = header()->progress_share};
}

}  // namespace railyard
