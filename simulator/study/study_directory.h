// SPDX-License-Identifier: GPL-2.0-only
// Manages the directory of a study. One study at a time writes there; results of an earlier study
// are recognized by the keys of its runs.
//
//   keys            a line per run: its key (run_key.h)
//   runs/NUMBER     the result of a run, complete or absent; its output is runs/NUMBER.log
//   runs/.ended-NUMBER  a result that is not yet forced to disk
//   baselines/KEY   times of a fault-free run that several runs share
//   points.csv, statistics.csv, study.sqlite
//   .lock, .workers  locks of the study and of its runs
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// The names of results that are not yet forced to disk begin with this.
inline constexpr std::string_view kUnpublishedRun = ".ended-";

// Returns the path of a run's results; PATH.log has its output.
std::string RunPath(const std::string& directory, size_t run);

// Returns the path of the file that keeps the outcome of a fault-free run (FaultFreeKey()).
std::string BaselinePath(const std::string& directory, const std::string& key);

class StudyDirectory {
 public:
  // Creates the directory of a new study. A directory that is not empty, or in which another study
  // runs, is an error in `diagnostics`, and null is returned. Throws EnvironmentError if it cannot
  // be created.
  static std::unique_ptr<StudyDirectory> Create(const std::string& path,
                                                const std::vector<std::string>& keys,
                                                Diagnostics& diagnostics);
  // Resumes a study that was ended for any reason: results whose run has a key in `keys` are kept
  // and get that run's number; others are removed, and files that are not the study's are left. A
  // directory that holds something else is an error in `diagnostics`. First waits for runs that
  // outlive the study that started them, and cancels its Slurm jobs. If the directory is absent or
  // empty, this does the same as Create(). Throws Interrupted if a signal requests the end
  // meanwhile.
  static std::unique_ptr<StudyDirectory> Resume(const std::string& path,
                                                const std::vector<std::string>& keys,
                                                Diagnostics& diagnostics);

  const std::string& path() const { return path_; }
  // Returns true if the run has a complete result.
  bool IsDone(size_t run) const { return is_done_[run]; }

 private:
  // Holds a file that stays locked while this, or a process that inherits it, lives.
  class Lock;

  explicit StudyDirectory(std::string path) : path_(std::move(path)) {}
  bool TakeLocks(Diagnostics& diagnostics);
  void WriteKeys(const std::vector<std::string>& keys) const;
  void KeepResults(const std::vector<std::string>& keys);
  void NoteDone(size_t runs);

  std::string path_;
  std::shared_ptr<Lock> lock_;
  std::shared_ptr<Lock> workers_;
  std::vector<bool> is_done_;
};

}  // namespace railyard
