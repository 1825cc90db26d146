// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/local_executor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/processes/alarm.h"
#include "simulator/processes/child_process.h"
#include "simulator/study/run_queue.h"
#include "simulator/study/study_directory.h"

namespace railyard {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kKilled = 128 + SIGKILL;

struct RunningRun {
  size_t run = 0;
  Clock::time_point begin{};
  bool is_over_time = false;
  ChildProcess process{};
};

// Runs one study; see LocalExecutor().
class LocalExecution {
 public:
  LocalExecution(const LocalOptions& options, const StudyWork& work)
      : options_(options), work_(work), queue_(work.runs, work.left, options.memory_bytes) {
    // It wakes each second, to see which runs are over time.
    if (options_.time_limit_seconds) alarm_.emplace(1);
  }

  void Execute() {
    while (!queue_.is_empty() || !running_.empty()) {
      while (running_.size() < options_.jobs) {
        const auto run = queue_.Start();
        if (!run) break;
        Start(*run);
      }
      std::vector<ChildProcess*> processes;
      for (const auto& entry : running_) processes.push_back(&entry->process);
      const auto ended = ChildProcess::WaitForAny(processes, [this] { EndOverdue(); });
      // The signal may have ended that process, too.
      if (!ended || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
      const auto at = running_.begin() + static_cast<std::ptrdiff_t>(ended->index);
      const std::unique_ptr<RunningRun> run = std::move(*at);
      running_.erase(at);
      End(*run, ended->status);
    }
  }

 private:
  void Start(size_t run) {
    const std::string path = RunPath(work_.directory, run);
    running_.push_back(std::make_unique<RunningRun>());
    running_.back()->run = run;
    running_.back()->begin = Clock::now();
    running_.back()->process.Start(CommandOf(work_.study, work_.runs[run], path), path + ".log");
  }

  void EndOverdue() {
    if (!options_.time_limit_seconds) return;
    for (const auto& entry : running_) {
      if (entry->is_over_time ||
          Clock::now() - entry->begin < std::chrono::seconds(*options_.time_limit_seconds)) {
        continue;
      }
      entry->is_over_time = true;
      entry->process.AskToEnd();
    }
  }

  void End(const RunningRun& run, int exit) {
    const std::string path = RunPath(work_.directory, run.run);
    // A process that is killed when its result is complete has ended: nothing is left to do.
    const bool is_complete = exit == kKilled && !run.is_over_time && HasResult(path);
    const bool was_killed = exit == kKilled && !run.is_over_time && !is_complete;
    if (was_killed && queue_.Retry(run.run)) return;
    std::optional<RunEnd> end;
    if (run.is_over_time) {
      end = RunEnd{kTimeLimitExit, kTimeLimit};
    } else if (!is_complete) {
      end = RunEnd{exit};
    }
    const StudyRunResult result = ReadRunResult(work_.study, path, end);
    if (!was_killed && result.seconds && result.peak_memory_bytes) {
      queue_.End(run.run, *result.seconds, *result.peak_memory_bytes);
    } else if (!was_killed) {
      queue_.End(run.run);
    }
    work_.on_ended(run.run, result);
  }

  const LocalOptions& options_;
  const StudyWork& work_;
  RunQueue queue_;
  std::vector<std::unique_ptr<RunningRun>> running_;
  std::optional<Alarm> alarm_;
};

// The number of a file whose text is nothing else; nullopt for "max" and where there is none.
std::optional<int64_t> NumberInFile(const char* path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

int64_t FreeMemoryBytes() {
  int64_t free_bytes = std::numeric_limits<int64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  std::string unit;
  int64_t kib = 0;
  for (std::string name; meminfo >> name >> kib && std::getline(meminfo, unit);) {
    if (name == "MemAvailable:") free_bytes = kib << 10;
  }
  const auto limit = NumberInFile("/sys/fs/cgroup/memory.max");
  const auto used = NumberInFile("/sys/fs/cgroup/memory.current");
  if (limit && used) free_bytes = std::min(free_bytes, std::max<int64_t>(0, *limit - *used));
  return free_bytes;
}

StudyExecutor LocalExecutor(LocalOptions options) {
  return [options](const StudyWork& work) { LocalExecution(options, work).Execute(); };
}

}  // namespace railyard
