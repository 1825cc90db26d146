// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simulator/study/cost_model.h"
#include "simulator/study/study.h"

namespace railyard {

// Decides which run of a study starts next: the one with the longest estimated time, so that no
// long run is left alone at the end, among those whose estimated memory is free. Before any run has
// ended, runs start in order.
class RunQueue {
 public:
  // `left` holds the runs to start, as indices into `runs`, which must outlive this. Together the
  // running ones may take `memory_bytes`.
  RunQueue(const std::vector<StudyRun>& runs, std::vector<size_t> left, int64_t memory_bytes);

  bool is_empty() const { return waiting_.empty(); }
  // Returns a run, which counts as running from now on; nullopt if none waits, or if none of the
  // next fits into the memory that the running ones leave. If none is running, the next always
  // fits.
  std::optional<size_t> Start();
  // Notes that the run has ended. A run without a cost, because it left no result, does not affect
  // the estimates of others.
  void End(size_t run);
  void End(size_t run, double seconds, int64_t memory_bytes);
  // Puts back a run that was killed, possibly for lack of memory; it will run while no other does.
  // Returns false if it was put back before; it has ended then.
  bool Retry(size_t run);

  // Returns the memory that the run is expected to take; 0 if unknown.
  int64_t EstimatedBytes(size_t run) const;

 private:
  void SortWaiting();

  const std::vector<StudyRun>& runs_;
  int64_t memory_bytes_;
  std::vector<size_t> waiting_;                   // the next one last
  std::unordered_map<size_t, int64_t> reserved_;  // by running run: bytes
  int64_t reserved_bytes_ = 0;
  std::unordered_set<size_t> alone_;  // runs that were put back
  CostModel seconds_;
  CostModel bytes_;
  std::unordered_map<uint64_t, int64_t> most_at_;  // by point: the largest memory of its runs
  size_t sorted_version_ = 0;
};

}  // namespace railyard
