// SPDX-License-Identifier: GPL-2.0-only
// Forces the results of runs to disk, many at once, while other runs go on.
#pragma once

#include <atomic>
#include <cstddef>
#include <future>
#include <string>
#include <vector>

#include "simulator/files/file_sync.h"

namespace railyard {

// Runs write their results under hidden names and do not wait for the disk. A study publishes them:
// they are forced to disk together, and then each gets its own name. Whatever has a name is
// complete, at whatever instant the study is killed or the power is cut.
class ResultPublisher {
 public:
  // `directory`: the study's, which exists.
  explicit ResultPublisher(std::string directory);
  ResultPublisher(const ResultPublisher&) = delete;
  ResultPublisher& operator=(const ResultPublisher&) = delete;
  ~ResultPublisher();  // waits for what goes on

  // Returns the place where a run is to write its results.
  std::string UnpublishedPath(size_t run) const;

  // Asks for the results of a run that has ended, if it has left any.
  void Add(size_t run) { waiting_.push_back(run); }
  // Starts to publish, in a thread, what was asked for, unless that goes on already. Its end wakes
  // ChildProcess::WaitForAny().
  void Start();
  // Returns the runs whose results have been published since the last call. Throws EnvironmentError
  // if the disk has failed or is full.
  std::vector<size_t> Take();
  // Publishes everything, and returns it as Take() does.
  std::vector<size_t> FinishAll();

  // Removes what runs have left that was not published.
  void RemoveRest() const;

 private:
  void Publish() const;

  std::string directory_;
  FileSystemSync sync_;
  std::vector<size_t> waiting_;
  std::vector<size_t> publishing_;
  std::future<void> thread_;  // valid from Start() to the end of Take()
  std::atomic<bool> has_ended_{false};
};

}  // namespace railyard
