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

// Publishes results. Runs write them under hidden names and do not wait for the disk. They are
// forced to disk together, and then each gets its final name. A result with its final name is
// complete, at whichever instant the study is killed or the power is cut.
class ResultPublisher {
 public:
  // `directory` is that of the study, and exists.
  explicit ResultPublisher(std::string directory);
  ResultPublisher(const ResultPublisher&) = delete;
  ResultPublisher& operator=(const ResultPublisher&) = delete;
  ~ResultPublisher();  // waits for the thread

  // Returns the place where a run is to write its results.
  std::string UnpublishedPath(size_t run) const;

  // Requests the publication of the results of a run that has ended, if it has left any.
  void Add(size_t run) { waiting_.push_back(run); }
  // Starts to publish the requested results in a thread, unless one is running or its results have
  // not been taken. The end of the thread wakes ChildProcess::WaitForAny().
  void Start();
  // Returns the runs whose results have been published since the last call. Throws EnvironmentError
  // if the disk has failed or is full.
  std::vector<size_t> Take();
  // Publishes all requested results, and returns their runs as Take() does.
  std::vector<size_t> FinishAll();

  // Removes the results that were not published.
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
