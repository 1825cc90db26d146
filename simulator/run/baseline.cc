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

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

Baseline::Baseline(size_t collective_count)
    : count_(collective_count),
      bytes_(sizeof(Header) + collective_count * sizeof(CollectiveOutcome)) {
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) {
    throw EnvironmentError(std::string("no memory to share with the fault-free run: ") +
                           std::strerror(errno));
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
    throw EnvironmentError(std::string("the fault-free run cannot be forked: ") +
                           std::strerror(errno));
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
        WIFSIGNALED(status)
            ? "the fault-free run was killed by signal " + std::to_string(WTERMSIG(status))
            : "the fault-free run ended with status " + std::to_string(WEXITSTATUS(status)));
  }
  Outcome outcome;
  outcome.collectives.assign(collectives(), collectives() + count_);
  outcome.simulated_time_ps = header()->simulated_time_ps;
  outcome.cpu_seconds = header()->cpu_seconds;
  return outcome;
}

}  // namespace railyard
