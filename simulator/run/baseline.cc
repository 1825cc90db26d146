// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/baseline.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

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
  if (is_forked()) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  munmap(memory_, bytes_);
}

CollectiveOutcome* Baseline::collectives() const {
  return reinterpret_cast<CollectiveOutcome*>(static_cast<char*>(memory_) + sizeof(Header));
}

bool Baseline::Fork() {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) {
    child_ = 0;
    throw EnvironmentError(name_ + " cannot be forked: " + std::strerror(errno));
  }
  if (child_ > 0) return false;
  is_child_ = true;
  // A parent that is killed takes the child along.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  return true;
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

Baseline::Outcome Baseline::Wait() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
  if (header()->finished != 1) {
    throw EnvironmentError(
        WIFSIGNALED(status) ? name_ + " was killed by signal " + std::to_string(WTERMSIG(status))
                            : name_ + " ended with status " + std::to_string(WEXITSTATUS(status)));
  }
  Outcome outcome;
  outcome.collectives.assign(collectives(), collectives() + count_);
  outcome.job_end_ps.assign(job_ends(), job_ends() + job_count_);
  outcome.simulated_time_ps = header()->simulated_time_ps;
  outcome.cpu_seconds = header()->cpu_seconds;
  return outcome;
}

}  // namespace railyard
