// SPDX-License-Identifier: GPL-2.0-only
// Matches the collective calls of a trace's ranks: the k-th call on a communicator is the same
// collective on all of its ranks, which NCCL relies on too.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"
#include "workloads/job/job.h"

namespace railyard {

class CollectiveMatcher {
 public:
  // All must outlive this. New collectives are appended to `collectives`.
  CollectiveMatcher(const Trace& trace, std::vector<JobCollective>& collectives,
                    Diagnostics& diagnostics);

  // Returns the collective of `rank`'s next call on the communicator with that index. A call that
  // differs from that of the first rank is an error with a note, once per communicator.
  CollectiveIndex Match(const TraceOperation& operation, CommunicatorIndex communicator,
                        RankIndex rank);
  // Returns the number of calls that `rank` has made so far. AddCalls counts further calls, which
  // were matched for another rank with the same program.
  uint32_t CallsOf(CommunicatorIndex communicator, RankIndex rank) const {
    return communicators_[communicator].call_counts[rank];
  }
  void AddCalls(CommunicatorIndex communicator, RankIndex rank, uint32_t calls) {
    communicators_[communicator].call_counts[rank] += calls;
  }
  // Reports an error for every rank that made fewer calls than another of its communicator.
  void CheckCounts();

 private:
  struct Communicator {
    std::vector<CollectiveIndex> collectives;  // by call
    std::vector<RankIndex> first_ranks;        // by call: the rank that called first
    std::vector<uint32_t> call_counts;         // by communicator rank
    bool mismatched = false;
  };
  void CheckSame(const TraceOperation& operation, CommunicatorIndex communicator, RankIndex rank,
                 uint64_t call);

  const Trace& trace_;
  std::vector<JobCollective>& collectives_;
  Diagnostics& diagnostics_;
  std::vector<Communicator> communicators_;
};

}  // namespace railyard
