// SPDX-License-Identifier: GPL-2.0-only
// The directory of a study: one study at a time writes there, and what an earlier one finished is
// known by the keys of its runs.
//
//   keys            a line per run: its key (run_key.h)
//   runs/NUMBER     the result of a run, complete or absent; runs/NUMBER.log what it printed
//   points.csv, statistics.csv
//   .lock, .workers  locks of the study and of its runs
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// Where the results of a run go, and PATH.log what it printed.
std::string RunPath(const std::string& directory, size_t run);

class StudyDirectory {
 public:
  // Makes the directory of a new study. One that holds anything, or in which another study runs, is
  // an error in `diagnostics`, and null is returned. EnvironmentError where it cannot be made.
  static std::unique_ptr<StudyDirectory> Create(const std::string& path,
                                                const std::vector<std::string>& keys,
                                                Diagnostics& diagnostics);
  // Goes on with a study that was ended, by whatever: results whose run has a key in `keys` are
  // kept, and get that run's number; others are removed. Waits for runs that outlive the study that
  // started them. Where there is no study, this is Create().
  static std::unique_ptr<StudyDirectory> Resume(const std::string& path,
                                                const std::vector<std::string>& keys,
                                                Diagnostics& diagnostics);

  const std::string& path() const { return path_; }
  // Whether the run's result is there, complete.
  bool IsDone(size_t run) const { return is_done_[run]; }

 private:
  // A file that is locked for as long as this, or a process that inherits it, lives.
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
