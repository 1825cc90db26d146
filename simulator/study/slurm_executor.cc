// SPDX-License-Identifier: GPL-2.0-only
//   DIR/slurm/name          the name of the study's jobs, while there are any
//   DIR/slurm/BATCH-TASK.sh  the runs of one task; BATCH counts job arrays
//   DIR/slurm/exit-RUN      the exit status of a run that has ended
//   DIR/slurm/collect.sh    what collects the results of a study that nobody waits for
#include "simulator/study/slurm_executor.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/input_file.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/interruption.h"
#include "simulator/processes/shell_word.h"
#include "simulator/study/study_directory.h"
#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kAttempts = 3;
constexpr size_t kTasksPerArrayMax = 1'000;  // Slurm's default MaxArraySize is 1001
constexpr auto kPollFirst = milliseconds(500);
constexpr auto kPollMax = milliseconds(10'000);
// A shared file system may show files of other nodes only later.
constexpr auto kPatienceForFiles = milliseconds(2'000);
constexpr int kUnansweredMax = 60;

void ThrowIfInterrupted() {
  if (NotedInterruption() != 0) throw Interrupted(TakeInterruption());
}

// Sleeps, but for a signal that requests the end.
void Sleep(milliseconds time) {
  constexpr auto kStep = milliseconds(100);
  for (auto slept = milliseconds(0); slept < time && NotedInterruption() == 0; slept += kStep) {
    std::this_thread::sleep_for(std::min(kStep, time));
  }
}

std::string SlurmFile(const std::string& directory, const std::string& name) {
  return directory + "/slurm/" + name;
}

std::string FirstLineOf(const std::string& path) {
  std::ifstream file = OpenInputFile(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the last line that begins with a digit, as those with numbers of jobs do and warnings do
// not; empty if there is none.
std::string LineWithNumber(const std::string& output) {
  std::istringstream lines(output);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] >= '0' && line[0] <= '9') found = line;
  }
  return found;
}

// Asks whether jobs of that name are waiting or running.
class JobWatch {
 public:
  explicit JobWatch(std::string name) : name_(std::move(name)) {}

  bool AreGone() {
    const ProgramEnd answer = OutputOf({"squeue", "--noheader", "--format=%i", "--name=" + name_});
    if (answer.status == 0) {
      unanswered_ = 0;
      return LineWithNumber(answer.output).empty();
    }
    // The controller may be restarting.
    if (++unanswered_ <= kUnansweredMax) return false;
    throw EnvironmentError(fmt::format("squeue: {}", answer.OneLine()));
  }

 private:
  std::string name_;
  int unanswered_ = 0;
};

// Runs one study; see SlurmExecutor().
class SlurmExecution {
 public:
  SlurmExecution(const SlurmOptions& options, const StudyWork& work)
      : options_(options),
        work_(work),
        waiting_(work.left.begin(), work.left.end()),
        name_(fmt::format("railyard-{}-{:x}", getpid(),
                          std::chrono::system_clock::now().time_since_epoch().count())) {
    std::error_code error;
    program_ = fs::read_symlink("/proc/self/exe", error).string();
  }

  void Execute() {
    fs::remove_all(SlurmFile(work_.directory, ""));
    fs::create_directories(SlurmFile(work_.directory, ""));
    WriteOutput(SlurmFile(work_.directory, "name"), name_ + "\n");
    WriteOutput(SlurmFile(work_.directory, "task.sh"),
                fmt::format("#!/bin/sh\nexec sh {}/$1-$SLURM_ARRAY_TASK_ID.sh\n",
                            ShellWord(work_.directory + "/slurm")));
    try {
      for (int attempt = 0; attempt < kAttempts && !waiting_.empty(); ++attempt) {
        Submit();
        if (!options_.collecting.empty()) throw Detached(SubmitCollector());
        Collect();
      }
    } catch (const Detached&) {
      throw;
    } catch (...) {
      if (may_have_jobs_) {
        OutputOf({"scancel", "--name=" + name_});
      } else {
        fs::remove(SlurmFile(work_.directory, "name"));
      }
      throw;
    }
    for (const size_t run : std::exchange(waiting_, {})) End(run, RunEnd{1, kLost});
    fs::remove(SlurmFile(work_.directory, "name"));
  }

 private:
  // Submits what is waiting. Neighbours among runs, which often take as long, go to different
  // tasks.
  void Submit() {
    const std::vector<size_t> runs(waiting_.begin(), waiting_.end());
    for (const size_t run : runs) fs::remove_all(RunPath(work_.directory, run));
    const size_t per_task =
        options_.runs_per_task > 0 ? options_.runs_per_task : DivideUp(runs.size(), kSlurmTasks);
    const size_t tasks = DivideUp(runs.size(), per_task);
    for (size_t first = 0; first < tasks; first += kTasksPerArrayMax) {
      const size_t count = std::min(kTasksPerArrayMax, tasks - first);
      ++batch_;
      for (size_t task = 0; task < count; ++task) {
        std::string script;
        for (size_t i = first + task; i < runs.size(); i += tasks) script += ScriptOf(runs[i]);
        WriteScript(SlurmFile(work_.directory, fmt::format("{}-{}.sh", batch_, task)), script);
      }
      SubmitArray(count);
    }
  }

  // These are many, and needed only while this process lives: they are not forced to disk.
  static void WriteScript(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) ThrowErrno("write", path);
  }

  // A task that the cluster starts again leaves out the runs that had ended by themselves.
  std::string ScriptOf(size_t run) const {
    const std::string path = RunPath(work_.directory, run);
    const std::string exit = SlurmFile(work_.directory, fmt::format("exit-{}", run));
    std::string command;
    if (options_.time_limit_seconds) {
      command = fmt::format("timeout -k 10 {} ", *options_.time_limit_seconds);
    }
    command += ShellWord(program_);
    for (const std::string& word : work_.CommandOf(run, path)) {
      command += " " + ShellWord(word);
    }
    return fmt::format(
        "[ -e {2} ] || {{ {1} >{0}.log 2>&1 </dev/null; s=$?; [ $s != {3} ] && grep -qs "
        "'\"INTERRUPTED\"' {0}/summary.json || {{ echo $s >{2}.part; mv {2}.part {2}; }}; }}\n",
        ShellWord(path), command, ShellWord(exit), kTimeLimitExit);
  }

  void SubmitArray(size_t tasks) {
    jobs_.push_back(Sbatch({fmt::format("--array=0-{}", tasks - 1),
                            "--output=" + SlurmFile(work_.directory, "task-%A_%a.log")},
                           {SlurmFile(work_.directory, "task.sh"), std::to_string(batch_)}));
  }

  // Returns its number. It follows the jobs however they end: after one that failed, "afterok"
  // would never come. It forgets their name, by which it would cancel itself.
  std::string SubmitCollector() {
    std::string command = ShellWord(program_);
    for (const std::string& word : options_.collecting) command += " " + ShellWord(word);
    const std::string script = SlurmFile(work_.directory, "collect.sh");
    WriteOutput(script, fmt::format("#!/bin/sh\nrm -f {}\nexec {}\n",
                                    ShellWord(SlurmFile(work_.directory, "name")), command));
    std::string jobs;
    for (const std::string& job : jobs_) jobs += ":" + job;
    return Sbatch({"--dependency=afterany" + jobs, "--output=" + work_.directory + "/collect.log"},
                  {script});
  }

  // Submits a script with arguments; returns the job's number.
  std::string Sbatch(const std::vector<std::string>& options,
                     const std::vector<std::string>& script) {
    std::error_code error;
    std::vector<std::string> words = {"sbatch", "--parsable", "--job-name=" + name_,
                                      "--chdir=" + fs::current_path(error).string()};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), options_.sbatch.begin(), options_.sbatch.end());
    words.insert(words.end(), script.begin(), script.end());
    const ProgramEnd answer = OutputOf(words);
    may_have_jobs_ |= answer.status == 0 || NotedInterruption() != 0;
    ThrowIfInterrupted();
    if (answer.status != 0) throw EnvironmentError(fmt::format("sbatch: {}", answer.OneLine()));
    const std::string job = LineWithNumber(answer.output);  // "JOB;CLUSTER"
    if (job.empty()) throw EnvironmentError(fmt::format("sbatch: {}", answer.OneLine()));
    return job.substr(0, job.find(';'));
  }

  // Reports runs as they end, until all have or no job is left.
  void Collect() {
    JobWatch watch(name_);
    auto pause = kPollFirst;
    while (!waiting_.empty()) {
      Sleep(pause);
      pause = std::min(pause + pause / 2, kPollMax);
      ThrowIfInterrupted();
      const bool are_gone = watch.AreGone();
      if (TakeExits()) pause = kPollFirst;
      if (!are_gone || waiting_.empty()) continue;
      Sleep(kPatienceForFiles);
      TakeExits();
      TakeResults();
      return;
    }
  }

  // Returns true if a run has ended.
  bool TakeExits() {
    bool is_any = false;
    constexpr std::string_view kPrefix = "exit-";
    for (const fs::directory_entry& entry : fs::directory_iterator(work_.directory + "/slurm")) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(kPrefix) || name.ends_with(".part")) continue;
      size_t run = 0;
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), run);
      int exit = 0;
      if (!waiting_.contains(run) || !(OpenInputFile(entry.path().string()) >> exit)) continue;
      waiting_.erase(run);
      const bool is_over_time = options_.time_limit_seconds && exit == kTimeLimitExit;
      End(run, RunEnd{exit, is_over_time ? kTimeLimit : nullptr});
      is_any = true;
    }
    return is_any;
  }

  // A result counts even if its task was ended before it could say so.
  void TakeResults() {
    for (const size_t run : std::vector<size_t>(waiting_.begin(), waiting_.end())) {
      if (!HasResult(RunPath(work_.directory, run))) continue;
      waiting_.erase(run);
      End(run, std::nullopt);
    }
  }

  void End(size_t run, std::optional<RunEnd> end) const {
    work_.on_ended(run, ReadRunResult(work_.study, RunPath(work_.directory, run), end));
  }

  const SlurmOptions& options_;
  const StudyWork& work_;
  std::set<size_t> waiting_;
  std::string name_;
  std::string program_;
  int batch_ = 0;
  std::vector<std::string> jobs_;  // numbers of the job arrays
  bool may_have_jobs_ = false;
};

}  // namespace

StudyExecutor SlurmExecutor(SlurmOptions options) {
  return [options = std::move(options)](const StudyWork& work) {
    SlurmExecution(options, work).Execute();
  };
}

void CancelEarlierSlurmJobs(const std::string& directory) {
  const std::string path = SlurmFile(directory, "name");
  const std::string name = FirstLineOf(path);
  if (name.empty()) return;
  const ProgramEnd answer = OutputOf({"scancel", "--name=" + name});
  JobWatch watch(name);
  while (!watch.AreGone()) {
    // A refusal to cancel matters only if jobs are left.
    if (answer.status != 0) {
      throw EnvironmentError(
          fmt::format("the jobs {} of an earlier study in {} cannot be cancelled: {}", name,
                      directory, answer.OneLine()));
    }
    Sleep(kPollFirst);
    ThrowIfInterrupted();
  }
  fs::remove(path);
}

}  // namespace railyard
