// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/forked_copies.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <unistd.h>
#include <utility>
#include <vector>

#include "simulator/processes/child_process.h"
#include "simulator/processes/interruption.h"

namespace railyard {
namespace {

struct Running {
  size_t index = 0;
  Handover handover{};
  ChildProcess process{};
};

[[noreturn]] void WorkInCopy(const std::function<void(size_t, Handover&)>& work, Running& copy) {
  int status = 0;
  try {
    work(copy.index, copy.handover);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "railyard: %s\n", error.what());
    status = 1;
  }
  std::fflush(stderr);
  _exit(status);  // nothing of the parent's may be flushed or destroyed twice
}

}  // namespace

void RunInCopies(size_t count, size_t at_once, const std::function<void(size_t, Handover&)>& work,
                 const std::function<void(const EndedCopy&)>& on_end) {
  std::vector<std::unique_ptr<Running>> running;
  size_t next = 0;
  while (next < count || !running.empty()) {
    for (; next < count && running.size() < at_once; ++next) {
      auto copy = std::make_unique<Running>();
      copy->index = next;
      if (copy->process.Fork("a run")) WorkInCopy(work, *copy);
      running.push_back(std::move(copy));
    }
    std::vector<ChildProcess*> processes;
    for (const auto& copy : running) processes.push_back(&copy->process);
    const auto ended = ChildProcess::WaitForAny(processes);
    // The signal may have ended that copy, too.
    if (!ended || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
    Running& copy = *running[ended->index];
    on_end({.index = copy.index, .status = ended->status, .handover = copy.handover});
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended->index));
  }
}

}  // namespace railyard
