// SPDX-License-Identifier: GPL-2.0-only
// One rank of a plan's trace by itself: what it would take if every call took a given time and
// nobody waited for anybody.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

// A call as it is timed: a collective; the Sends and Recvs of a group as one AllToAll of their mean
// size. Equal calls of one rank's program take equally long.
struct PlannedCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t communicator = 0;  // index into Trace::communicators
  uint64_t bytes = 0;         // of the call's count; kAllToAll: to each rank
  bool operator==(const PlannedCall&) const = default;
};

struct RankTimeline {
  int64_t compute_ps = 0;
  int64_t blocking_ps = 0;  // calls that computation waits for in its own stream
  int64_t expert_ps = 0;    // those of experts, of these
  int64_t exposed_ps = 0;   // what is left to wait for on other streams
  int64_t beside_ps = 0;    // calls of other streams
  int64_t total_ps() const { return compute_ps + blocking_ps + exposed_ps; }
};

// In the order of the program. A group is one call; what receives only is left out, and of equal
// calls in a row all but the first.
void ForEachCall(const Trace& trace, uint32_t rank,
                 const std::function<void(const PlannedCall&)>& visit);

// `time_ps` of a call. Operations wait as the trace says, for those before them on their stream and
// for one other. Sends and receives of a pipeline take no time here.
RankTimeline TimelineOf(const Trace& trace, uint32_t rank,
                        const std::function<int64_t(const PlannedCall&)>& time_ps);

// How AllToAllvs of experts bind ranks of a group to one another: none ends before the rank that
// comes last has come, and all take as long as the rank that sends or receives most.
struct ExpertTime {
  int64_t alone_ps = 0;     // the rank's AllToAllvs if all ranks had what it has
  int64_t exchange_ps = 0;  // as they are
  int64_t wait_ps = 0;      // for ranks that have more to compute before them
};
// By rank of the trace; ranks go through what is in their own streams only.
std::vector<ExpertTime> ExpertTimesOf(const Trace& trace,
                                      const std::function<int64_t(const PlannedCall&)>& time_ps);

// "tensor" of a communicator that is called "tensor 3".
std::string GroupNameOf(const TraceCommunicator& communicator);

}  // namespace railyard
