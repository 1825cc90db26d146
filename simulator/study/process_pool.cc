// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/process_pool.h"

#include <memory>

#include "simulator/processes/child_process.h"

namespace railyard {

void RunProcesses(const std::vector<std::vector<std::string>>& commands,
                  const std::vector<std::string>& logs, uint32_t jobs,
                  const std::function<void(size_t index, int status)>& on_ended) {
  struct Running {
    size_t index = 0;
    ChildProcess process{};
  };
  std::vector<std::unique_ptr<Running>> running;
  size_t next = 0;
  while (next < commands.size() || !running.empty()) {
    while (next < commands.size() && running.size() < jobs) {
      running.push_back(std::make_unique<Running>());
      running.back()->index = next;
      running.back()->process.Start(commands[next], logs[next]);
      ++next;
    }
    std::vector<ChildProcess*> processes;
    for (const auto& entry : running) processes.push_back(&entry->process);
    const auto ended = ChildProcess::WaitForAny(processes);
    // The signal may have ended that process, too.
    if (!ended || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
    const size_t index = running[ended->index]->index;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended->index));
    on_ended(index, ended->status);
  }
}

}  // namespace railyard
