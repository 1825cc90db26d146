// SPDX-License-Identifier: GPL-2.0-only
// Computes the timeline of one rank of a plan's trace in isolation: every call takes a given time,
// and no rank waits for another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

// Describes a call whose time is requested: a collective, or the Sends and Recvs of a group as one
// AllToAll of their mean size. Equal calls of one rank's program take the same time.
struct PlannedCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t communicator = 0;  // index into Trace::communicators
  uint64_t bytes = 0;         // of the call's count; for kAllToAll, to each rank
  bool operator==(const PlannedCall&) const = default;
};

struct RankTimeline {
  int64_t compute_ps = 0;
  int64_t blocking_ps = 0;  // calls for which computation waits in its own stream
  int64_t expert_ps = 0;    // part of blocking_ps: calls of experts
  int64_t wait_ps = 0;      // waits for computation of other streams: the arrival of requests
  int64_t exposed_ps = 0;   // remaining waits for other streams
  int64_t beside_ps = 0;    // calls of other streams
  int64_t total_ps() const { return compute_ps + blocking_ps + wait_ps + exposed_ps; }
};

// Visits calls in the order of the program. A group is one call; calls that only receive are left
// out, and so are repetitions of the previous call.
void ForEachCall(const Trace& trace, GlobalRank rank,
                 const std::function<void(const PlannedCall&)>& visit);

// Computes a rank's timeline; `time_ps` returns the time of a call. Operations wait for those
// before them on their stream and for one other, as the trace states. Sends and receives of a
// pipeline take no time here.
RankTimeline TimelineOf(const Trace& trace, GlobalRank rank,
                        const std::function<int64_t(const PlannedCall&)>& time_ps);

// Holds the time of a rank in AllToAllvs of experts. These synchronize the ranks of a group: no
// AllToAllv ends before the last rank has arrived, and all ranks take as long as the rank that
// sends or receives most.
struct ExpertTime {
  int64_t alone_ps = 0;     // if all ranks had this rank's bytes
  int64_t exchange_ps = 0;  // with each rank's actual bytes
  int64_t wait_ps = 0;      // for ranks that compute longer before them
};
// Returns the times by rank of the trace. Ranks wait only for operations of their streams.
std::vector<ExpertTime> ExpertTimesOf(const Trace& trace,
                                      const std::function<int64_t(const PlannedCall&)>& time_ps);

// Returns "tensor" for a communicator with the name "tensor 3".
std::string GroupNameOf(const TraceCommunicator& communicator);

}  // namespace railyard
