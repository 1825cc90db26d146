// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "simulator/files/input_file.h"
#include "simulator/files/output_file.h"
#include "simulator/study/slurm_executor.h"
#include "simulator/study/study_result.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

// Results that are being renumbered have this prefix and their key as their name.
constexpr std::string_view kKept = ".kept-";
constexpr size_t kKeyDigits = 32;

void Throw(const std::string& what, const std::error_code& error) {
  throw EnvironmentError(fmt::format("{}: {}", what, error.message()));
}

void MakeDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) Throw(path + " cannot be made", error);
}

void MakeFolders(const std::string& study) {
  MakeDirectories(study + "/runs");
  MakeDirectories(study + "/baselines");
}

void Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) Throw(fmt::format("{} cannot be renamed to {}", from, to), error);
}

void Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) Throw(path + " cannot be removed", error);
}

// All of them, before any is removed or renamed.
std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

bool IsAllOf(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool IsKey(std::string_view text) {
  return text.size() == kKeyDigits && IsAllOf(text, "0123456789abcdef");
}

// Returns whether a study gives names of this form to what is in its directory, or in `runs`.
bool IsNameOfStudy(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames = {
      "keys",           "runs",         ".lock",       ".workers", "baselines",  "points.csv",
      "statistics.csv", "study.sqlite", "report.html", "slurm",    "collect.log"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with(".railyard-");
}
bool IsNameOfRun(std::string_view name) {
  if (name.starts_with(kKept) || name.starts_with(kUnpublishedRun) ||
      name.starts_with(".railyard-")) {
    return true;
  }
  if (name.ends_with(".log")) name.remove_suffix(4);
  return name.size() >= 6 && IsAllOf(name, "0123456789");
}

std::vector<std::string> ReadLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file = OpenInputFile(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Returns why what is at `path` is no study; empty if it is one. A study that was killed before it
// had written its keys has made nothing but its folders and locks.
std::string WhyNoStudy(const std::string& path) {
  std::error_code error;
  for (const char* folder : {"/runs", "/baselines"}) {
    const fs::file_status status = fs::symlink_status(path + folder, error);
    if (fs::exists(status) && !fs::is_directory(status)) {
      return fmt::format("{} is no directory", path + folder);
    }
  }
  const fs::file_status keys = fs::symlink_status(path + "/keys", error);
  if (fs::is_regular_file(keys)) {
    const std::vector<std::string> lines = ReadLines(path + "/keys");
    if (std::ranges::all_of(lines, IsKey)) return {};
    return fmt::format("{}/keys has lines that are no keys", path);
  }
  if (fs::exists(keys)) return fmt::format("{}/keys is no regular file", path);
  for (const std::string& name : NamesIn(path)) {
    if (!IsNameOfStudy(name)) return fmt::format("holds no study, but {}", name);
  }
  if (!fs::exists(path + "/runs", error)) return {};
  for (const std::string& name : NamesIn(path + "/runs")) {
    if (!IsNameOfRun(name)) return fmt::format("holds no study, but runs/{}", name);
  }
  return {};
}

}  // namespace

class StudyDirectory::Lock {
 public:
  // With `is_inherited`, programs that are started hold it, too.
  Lock(const std::string& path, bool is_inherited)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | (is_inherited ? 0 : O_CLOEXEC), 0644)) {
    if (file_ < 0) ThrowErrno("cannot open", path);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { close(file_); }

  bool TryTake() const { return flock(file_, LOCK_EX | LOCK_NB) == 0; }
  void Take() const {
    while (flock(file_, LOCK_EX) != 0) {
      if (errno != EINTR || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
    }
  }

 private:
  int file_;
};

std::string RunPath(const std::string& directory, size_t run) {
  return fmt::format("{}/runs/{:06}", directory, run);
}

std::string BaselinePath(const std::string& directory, const std::string& key) {
  return fmt::format("{}/baselines/{}", directory, key);
}

bool StudyDirectory::TakeLocks(Diagnostics& diagnostics) {
  lock_ = std::make_shared<Lock>(path_ + "/.lock", false);
  if (!lock_->TryTake()) {
    diagnostics.Error({"--out " + path_}, "",
                      "another study runs there (expected another directory, or its end)");
    return false;
  }
  // Runs of a study that was killed end by themselves, but not at once.
  workers_ = std::make_shared<Lock>(path_ + "/.workers", true);
  workers_->Take();
  return true;
}

void StudyDirectory::WriteKeys(const std::vector<std::string>& keys) const {
  std::string text;
  for (const std::string& key : keys) text += key + "\n";
  WriteOutput(path_ + "/keys", text);
}

void StudyDirectory::NoteDone(size_t runs) {
  is_done_.assign(runs, false);
  for (size_t run = 0; run < runs; ++run) is_done_[run] = HasResult(RunPath(path_, run));
}

// Results are renumbered in two steps, so that an interruption leaves each under a name with its
// key.
void StudyDirectory::KeepResults(const std::vector<std::string>& keys) {
  std::unordered_map<std::string, size_t> run_of_key;
  for (size_t run = 0; run < keys.size(); ++run) run_of_key.emplace(keys[run], run);
  const std::string runs = path_ + "/runs/";
  const std::vector<std::string> earlier = ReadLines(path_ + "/keys");
  if (earlier != keys) {
    for (size_t run = 0; run < earlier.size(); ++run) {
      const std::string result = RunPath(path_, run);
      if (!run_of_key.contains(earlier[run]) || !HasResult(result)) continue;
      const std::string kept = runs + std::string(kKept) + earlier[run];
      Remove(kept);
      Rename(result, kept);
    }
    for (const std::string& name : NamesIn(runs)) {
      if (IsNameOfRun(name) && !name.starts_with(kKept)) Remove(runs + name);
    }
    WriteKeys(keys);
  }
  for (const std::string& name : NamesIn(runs)) {
    if (!IsNameOfRun(name) || !name.starts_with(".")) continue;
    const auto run =
        name.starts_with(kKept) ? run_of_key.find(name.substr(kKept.size())) : run_of_key.end();
    // A hidden name without a key is what a run that was killed left unfinished.
    if (run == run_of_key.end() || HasResult(RunPath(path_, run->second))) {
      Remove(runs + name);
    } else {
      Remove(RunPath(path_, run->second));
      Rename(runs + name, RunPath(path_, run->second));
    }
  }
}

std::unique_ptr<StudyDirectory> StudyDirectory::Create(const std::string& path,
                                                       const std::vector<std::string>& keys,
                                                       Diagnostics& diagnostics) {
  std::error_code error;
  if (fs::exists(path, error) && !(fs::is_directory(path, error) && fs::is_empty(path, error))) {
    diagnostics.Error({"--out " + path}, "",
                      fs::exists(path + "/keys", error)
                          ? "a study is there already (expected a new or empty directory, or "
                            "--resume to go on with it)"
                          : "is there already (expected a new or empty directory)");
    return nullptr;
  }
  MakeFolders(path);
  std::unique_ptr<StudyDirectory> directory(new StudyDirectory(path));
  if (!directory->TakeLocks(diagnostics)) return nullptr;
  directory->WriteKeys(keys);
  directory->NoteDone(keys.size());
  return directory;
}

std::unique_ptr<StudyDirectory> StudyDirectory::Resume(const std::string& path,
                                                       const std::vector<std::string>& keys,
                                                       Diagnostics& diagnostics) {
  std::error_code error;
  const bool is_new = !fs::exists(path, error) || fs::is_empty(path, error);
  if (is_new) return Create(path, keys, diagnostics);
  if (const std::string why = WhyNoStudy(path); !why.empty()) {
    diagnostics.Error({"--out " + path}, "",
                      why + " (expected the directory of a study, or a new one)");
    return nullptr;
  }
  MakeFolders(path);
  std::unique_ptr<StudyDirectory> directory(new StudyDirectory(path));
  if (!directory->TakeLocks(diagnostics)) return nullptr;
  // Its runs would write where results are renumbered.
  CancelEarlierSlurmJobs(path);
  directory->KeepResults(keys);
  directory->NoteDone(keys.size());
  return directory;
}

}  // namespace railyard
