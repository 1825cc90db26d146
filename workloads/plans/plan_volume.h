// SPDX-License-Identifier: GPL-2.0-only
// Computes the bytes that ranks send in a trace without running it, by the closed forms of rings. A
// collective of n ranks is one ring in the order of its communicator; each rank sends to the next
//   AllReduce               2 (n - 1) / n of the buffer,
//   AllGather, ReduceScatter  (n - 1) times a rank's share,
//   Broadcast               the buffer, except the rank before the root,
// and a Send, alone or as part of an AllToAllv, sends its bytes to its peer. Fractions of bytes are
// rounded down.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

struct GroupVolume {
  uint64_t calls = 0;          // over all ranks; a group of sends and receives is one call
  uint64_t bytes = 0;          // sent, over all ranks
  uint64_t largest_bytes = 0;  // sent by one rank
};

struct PlanVolume {
  // The payload bytes by (from, to).
  std::map<std::pair<GlobalRank, GlobalRank>, uint64_t> pairs;
  // The volumes by the first word of the communicators' names.
  std::map<std::string, GroupVolume> groups;
  int64_t compute_ps = 0;  // on the compute stream of the rank that computes longest
};

// Returns the volume of a trace. Precondition: Synthesize() made the trace.
PlanVolume VolumeOf(const Trace& trace);

}  // namespace railyard
