// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/local_executor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/files/input_file.h"
#include "simulator/processes/alarm.h"
#include "simulator/processes/child_process.h"
#include "simulator/study/result_publisher.h"
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

// Replaces a name in the end of a run's output, which names the result.
void ReplaceInLog(const std::string& log, const std::string& from, const std::string& to) {
  constexpr uintmax_t kLogBytesMax = 1 << 20;
  std::error_code error;
  if (std::filesystem::file_size(log, error) > kLogBytesMax || error) return;
  std::string text;
  {
    std::ifstream file = OpenInputFile(log);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = text.rfind(from);
  if (at == std::string::npos) return;
  text.replace(at, from.size(), to);
  std::ofstream(log, std::ios::binary | std::ios::trunc) << text;
}

// Runs one study; see LocalExecutor().
class LocalExecution {
 public:
  LocalExecution(const LocalOptions& options, const StudyWork& work)
      : options_(options),
        work_(work),
        queue_(work.runs, work.left, options.memory_bytes),
        publisher_(work.directory) {
    // It wakes each second, to see which runs are over time.
    if (options_.time_limit_seconds) alarm_.emplace(1);
  }

  void Execute() {
    try {
      while (!queue_.is_empty() || !running_.empty()) {
        while (running_.size() < options_.jobs) {
          const auto run = queue_.Start();
          if (!run) break;
          Start(*run);
        }
        WaitForOne();
      }
    } catch (const Interrupted&) {
      running_.clear();  // ends them
      Report(publisher_.FinishAll());
      publisher_.RemoveRest();
      throw;
    }
    Report(publisher_.FinishAll());
  }

 private:
  void Start(size_t run) {
    running_.push_back(std::make_unique<RunningRun>());
    running_.back()->run = run;
    running_.back()->begin = Clock::now();
    std::vector<std::string> command = work_.CommandOf(run, publisher_.UnpublishedPath(run));
    command.emplace_back("--no-sync");
    running_.back()->process.Start(command, RunPath(work_.directory, run) + ".log");
  }

  void WaitForOne() {
    std::vector<ChildProcess*> processes;
    for (const auto& entry : running_) processes.push_back(&entry->process);
    const auto ended = ChildProcess::WaitForAny(processes, [this] {
      EndOverdue();
      Publish();
    });
    // The signal may have ended that process, too.
    if (!ended || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
    const auto at = running_.begin() + static_cast<std::ptrdiff_t>(ended->index);
    const std::unique_ptr<RunningRun> run = std::move(*at);
    running_.erase(at);
    End(*run, ended->status);
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

  // The next run gets the memory and the core before this one's result is on disk.
  void End(const RunningRun& run, int exit) {
    const std::string path = publisher_.UnpublishedPath(run.run);
    if (exit != 0) {
      const std::string published = RunPath(work_.directory, run.run);
      ReplaceInLog(published + ".log", path, published);
    }
    // A process that is killed, or is asked to end, when its result is complete has ended: nothing
    // is left to do.
    const bool is_stopped = exit == kKilled || run.is_over_time;
    const bool is_complete = is_stopped && HasResult(path);
    const bool was_killed = exit == kKilled && !run.is_over_time && !is_complete;
    if (was_killed && queue_.Retry(run.run)) return;
    std::optional<RunEnd> end;
    if (!is_complete) {
      end = run.is_over_time ? RunEnd{kTimeLimitExit, kTimeLimit} : RunEnd{exit};
    }
    const StudyRunResult result = ReadRunResult(work_.study, path, end);
    if (!was_killed && result.seconds && result.peak_memory_bytes) {
      queue_.End(run.run, *result.seconds, *result.peak_memory_bytes);
    } else if (!was_killed) {
      queue_.End(run.run);
    }
    unreported_.emplace(run.run, result);
    publisher_.Add(run.run);
    Publish();
  }

  void Publish() {
    Report(publisher_.Take());
    publisher_.Start();
  }

  void Report(const std::vector<size_t>& published) {
    for (const size_t run : published) work_.on_ended(run, unreported_.extract(run).mapped());
  }

  const LocalOptions& options_;
  const StudyWork& work_;
  RunQueue queue_;
  ResultPublisher publisher_;
  std::vector<std::unique_ptr<RunningRun>> running_;
  std::unordered_map<size_t, StudyRunResult> unreported_;  // ended, not yet published
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
