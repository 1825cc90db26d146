// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/collective_matcher.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"
#include "workloads/job/call_place.h"

namespace railyard {
namespace {

// A log states the algorithm once for a collective; ranks without the statement agree with it.
template <typename Choice>
bool Differ(Choice a, Choice b) {
  return a != Choice::kUnstated && b != Choice::kUnstated && a != b;
}

}  // namespace

CollectiveMatcher::CollectiveMatcher(const Trace& trace, std::vector<JobCollective>& collectives,
                                     Diagnostics& diagnostics)
    : trace_(trace),
      collectives_(collectives),
      diagnostics_(diagnostics),
      communicators_(trace.communicators.size()) {
  for (size_t i = 0; i < communicators_.size(); ++i) {
    communicators_[i].call_counts.resize(trace.communicators[i].ranks.size());
  }
}

CollectiveIndex CollectiveMatcher::Match(const TraceOperation& operation, CommunicatorIndex number,
                                         RankIndex rank) {
  Communicator& communicator = communicators_[number];
  const uint32_t call = communicator.call_counts[rank]++;
  if (call < communicator.collectives.size()) {
    CheckSame(operation, number, rank, call);
    return communicator.collectives[call];
  }
  const uint32_t size = static_cast<uint32_t>(trace_.communicators[number].ranks.size());
  JobCollective collective;
  collective.kind = operation.kind;
  collective.communicator = number;
  collective.count = operation.count;
  collective.datatype = operation.datatype;
  collective.root = RankIndex{HasRoot(operation.kind) ? operation.root : 0};
  collective.bytes = OperationBytes(operation, size);
  collective.rank_count = size;
  collective.logged_algorithm = operation.algorithm;
  collective.logged_protocol = operation.protocol;
  collective.source_file = operation.source_file;
  collective.source_line = operation.source_line;
  collective.AddMeasured(operation.measured_ps);
  const CollectiveIndex index{collectives_.size()};
  collectives_.push_back(collective);
  communicator.collectives.push_back(index);
  communicator.first_ranks.push_back(rank);
  return index;
}

void CollectiveMatcher::CheckSame(const TraceOperation& operation, CommunicatorIndex number,
                                  RankIndex rank, uint64_t call) {
  Communicator& communicator = communicators_[number];
  JobCollective& first = collectives_[communicator.collectives[call]];
  const char* differs = nullptr;
  if (operation.kind != first.kind) {
    differs = "kind";
  } else if (operation.count != first.count) {
    differs = "count";
  } else if (operation.datatype != first.datatype) {
    differs = "datatype";
  } else if (HasRoot(operation.kind) && operation.root != first.root) {
    differs = "root";
  } else if (Differ(operation.algorithm, first.logged_algorithm)) {
    differs = "algorithm";
  } else if (Differ(operation.protocol, first.logged_protocol)) {
    differs = "protocol";
  }
  if (differs == nullptr) {
    if (first.logged_algorithm == Algorithm::kUnstated)
      first.logged_algorithm = operation.algorithm;
    if (first.logged_protocol == Protocol::kUnstated) first.logged_protocol = operation.protocol;
    first.AddMeasured(operation.measured_ps);
    return;
  }
  // Whatever follows on this communicator is out of step.
  if (communicator.mismatched) return;
  communicator.mismatched = true;
  TraceOperation first_call;
  first_call.kind = first.kind;
  first_call.count = first.count;
  first_call.datatype = first.datatype;
  first_call.root = first.root;
  const RankIndex first_rank = communicator.first_ranks[call];
  const auto choice = [](Algorithm algorithm, Protocol protocol) {
    if (algorithm == Algorithm::kUnstated && protocol == Protocol::kUnstated) return std::string();
    return fmt::format(" by {}/{}", AlgorithmName(algorithm), ProtocolName(protocol));
  };
  diagnostics_.Error(
      PlaceOf(trace_, operation.source_file, operation.source_line), "",
      fmt::format("call {} of rank {} on communicator {} is {}{}, that of rank {} is {}{}: the {} "
                  "differs (all ranks of a communicator make the same calls in the same order)",
                  call + 1, rank, trace_.communicators[number].name, DescribeCall(operation),
                  choice(operation.algorithm, operation.protocol), first_rank,
                  DescribeCall(first_call), choice(first.logged_algorithm, first.logged_protocol),
                  differs));
  diagnostics_.Note(PlaceOf(trace_, first.source_file, first.source_line), "",
                    fmt::format("call {} of rank {} on communicator {} is this one", call + 1,
                                first_rank, trace_.communicators[number].name));
}

void CollectiveMatcher::CheckCounts() {
  for (size_t i = 0; i < communicators_.size(); ++i) {
    const Communicator& communicator = communicators_[i];
    if (communicator.mismatched || communicator.collectives.empty()) continue;
    for (RankIndex rank{0}; rank < communicator.call_counts.size(); ++rank) {
      const uint64_t calls = communicator.call_counts[rank];
      if (calls == communicator.collectives.size()) continue;
      const JobCollective& missing = collectives_[communicator.collectives[calls]];
      diagnostics_.Error(
          PlaceOf(trace_, missing.source_file, missing.source_line), "",
          fmt::format(
              "rank {} of communicator {} makes {} collective calls, rank {} makes {}: it "
              "lacks this {} and what follows (all ranks make the same calls)",
              rank, trace_.communicators[i].name, calls,
              std::max_element(communicator.call_counts.begin(), communicator.call_counts.end()) -
                  communicator.call_counts.begin(),
              communicator.collectives.size(), CollectiveKindName(missing.kind)));
    }
  }
}

}  // namespace railyard
