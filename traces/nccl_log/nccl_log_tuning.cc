// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_tuning.h"

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

// Kind (nullopt where the line has none) and bytes as the lines of this process count them.
using Key = std::pair<std::optional<CollectiveKind>, uint64_t>;

struct Candidates {
  std::deque<uint32_t> calls;
  std::map<uint32_t, uint32_t> calls_of_handle;
};

bool IsTuned(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kBroadcast ||
         kind == CollectiveKind::kReduce;
}

class TuningMatcher {
 public:
  TuningMatcher(LoggedCalls& logged, const Placement& placement, const LogProcess& process)
      : logged_(logged), placement_(placement), process_(process) {}

  // Returns for how many calls a line says that NCCL chose no algorithm.
  uint64_t without_algorithm() const { return without_algorithm_; }

  // Returns how many lines found no call, or several.
  uint64_t Match(const std::vector<uint32_t>& calls) {
    const bool has_kind = process_.tuning.front().kind.has_value();
    const bool per_rank = process_.tuning.front().bytes_are_per_rank;
    uint64_t unmatched = 0;
    size_t next = 0;
    for (const TuningLine& line : process_.tuning) {
      while (next < calls.size() && calls[next] < line.calls_before) {
        if (MayPrint(calls[next]))
          AddCandidate(calls[next], KeyOf(calls[next], has_kind, per_rank));
        ++next;
      }
      if (!Take(line)) ++unmatched;
    }
    return unmatched;
  }

 private:
  // Rank 0 of a communicator of several ranks, or a rank no line tells.
  bool MayPrint(uint32_t index) const {
    const LoggedCall& call = logged_.calls[index];
    const CommunicatorHandle& handle = logged_.handles[call.handle];
    const auto& placed_rank = placement_.communicator_rank_of[call.handle];
    const auto& rank = placed_rank ? placed_rank : handle.rank;
    return IsTuned(call.kind) && handle.rank_count > 1 && rank.value_or(0) == 0;
  }

  Key KeyOf(uint32_t index, bool has_kind, bool per_rank) const {
    const LoggedCall& call = logged_.calls[index];
    TraceOperation operation;
    operation.kind = call.kind;
    operation.count = call.count;
    operation.datatype = call.datatype;
    return {has_kind ? std::optional(call.kind) : std::nullopt,
            per_rank ? call.count * DatatypeBytes(call.datatype)
                     : OperationBytes(operation, logged_.handles[call.handle].rank_count)};
  }

  void AddCandidate(uint32_t index, const Key& key) {
    Candidates& candidates = candidates_[key];
    candidates.calls.push_back(index);
    ++candidates.calls_of_handle[logged_.calls[index].handle];
  }

  bool Take(const TuningLine& line) {
    const auto found = candidates_.find({line.kind, line.bytes});
    if (found == candidates_.end()) return false;
    Candidates& candidates = found->second;
    LoggedCall& call = logged_.calls[candidates.calls.front()];
    const bool unambiguous = candidates.calls_of_handle.size() == 1;
    if (unambiguous) {
      call.algorithm = line.algorithm;
      call.protocol = line.protocol;
      if (line.algorithm == Algorithm::kUnstated) ++without_algorithm_;
    }
    candidates.calls.pop_front();
    if (--candidates.calls_of_handle[call.handle] == 0) {
      candidates.calls_of_handle.erase(call.handle);
    }
    if (candidates.calls.empty()) candidates_.erase(found);
    return unambiguous;
  }

  LoggedCalls& logged_;
  const Placement& placement_;
  const LogProcess& process_;
  uint64_t without_algorithm_ = 0;
  std::map<Key, Candidates> candidates_;
};

}  // namespace

void AttachTuning(LoggedCalls& logged, const Placement& placement, ImportReport& report) {
  std::vector<std::vector<uint32_t>> calls_of_process(logged.processes.size());
  for (uint32_t i = 0; i < logged.calls.size(); ++i) {
    const uint32_t process = logged.handles[logged.calls[i].handle].process;
    if (!logged.processes[process].tuning.empty()) calls_of_process[process].push_back(i);
  }
  uint64_t without_algorithm = 0;
  for (size_t p = 0; p < logged.processes.size(); ++p) {
    if (logged.processes[p].tuning.empty()) continue;
    TuningMatcher matcher(logged, placement, logged.processes[p]);
    report.tuning_lines_unmatched += matcher.Match(calls_of_process[p]);
    without_algorithm += matcher.without_algorithm();
  }
  if (without_algorithm > 0) {
    report.assumed.push_back(fmt::format(
        "{} that symmetric kernels or copy engines made {} as NCCL's tuner would choose",
        Counted(without_algorithm, "collective"), without_algorithm == 1 ? "runs" : "run"));
  }
}

}  // namespace railyard
