// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace railyard {
namespace {

// So many waiting runs are tried, to find one that fits where the next does not.
constexpr size_t kLookAhead = 256;
// More than any machine has, and sums of it fit.
constexpr int64_t kMemoryBytesMax = int64_t{1} << 60;

}  // namespace

RunQueue::RunQueue(const std::vector<StudyRun>& runs, std::vector<size_t> left,
                   int64_t memory_bytes)
    : runs_(runs),
      memory_bytes_(std::min(memory_bytes, kMemoryBytesMax)),
      waiting_(std::move(left)) {
  std::ranges::reverse(waiting_);
}

void RunQueue::SortWaiting() {
  if (sorted_version_ == seconds_.version()) return;
  sorted_version_ = seconds_.version();
  std::unordered_map<uint64_t, double> seconds_at;
  for (const size_t run : waiting_) {
    const StudyRun& waiting = runs_[run];
    if (!seconds_at.contains(waiting.point)) {
      seconds_at[waiting.point] = seconds_.Estimate(waiting.values);
    }
  }
  std::ranges::stable_sort(waiting_, [&](size_t a, size_t b) {
    return seconds_at.at(runs_[a].point) < seconds_at.at(runs_[b].point);
  });
}

int64_t RunQueue::EstimatedBytes(size_t run) const {
  const auto known = most_at_.find(runs_[run].point);
  if (known != most_at_.end()) return known->second;
  return std::llround(bytes_.EstimateOfLargest(runs_[run].values));
}

std::optional<size_t> RunQueue::Start() {
  SortWaiting();
  const size_t last = waiting_.size() - std::min(waiting_.size(), kLookAhead);
  for (size_t i = waiting_.size(); i-- > last;) {
    const size_t run = waiting_[i];
    // A run that runs alone takes more than there is, so nothing fits beside it.
    const int64_t bytes = alone_.contains(run) ? memory_bytes_ + 1 : EstimatedBytes(run);
    if (!reserved_.empty() && reserved_bytes_ + bytes > memory_bytes_) continue;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    reserved_[run] = bytes;
    reserved_bytes_ += bytes;
    return run;
  }
  return std::nullopt;
}

void RunQueue::End(size_t run) {
  const auto reserved = reserved_.find(run);
  reserved_bytes_ -= reserved->second;
  reserved_.erase(reserved);
}

void RunQueue::End(size_t run, double seconds, int64_t memory_bytes) {
  End(run);
  const StudyRun& ended = runs_[run];
  seconds_.Add(ended.values, seconds);
  bytes_.Add(ended.values, static_cast<double>(memory_bytes));
  int64_t& most = most_at_[ended.point];
  most = std::max(most, memory_bytes);
}

bool RunQueue::Retry(size_t run) {
  End(run);
  if (!alone_.insert(run).second) return false;
  waiting_.push_back(run);
  return true;
}

}  // namespace railyard
