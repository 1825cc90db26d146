// SPDX-License-Identifier: GPL-2.0-only
// Counts what a rank of a trace calls.
#pragma once

#include <cstdint>
#include <string>

#include "traces/trace/trace.h"

namespace railyard {

struct Calls {
  uint64_t count = 0;
  uint64_t elements = 0;
};

// Returns the rank's calls of a kind on communicators whose names begin with `group` and a space,
// with the elements that it passes to them.
inline Calls CallsOf(const Trace& trace, uint32_t rank, CollectiveKind kind,
                     const std::string& group) {
  Calls calls;
  for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
    if (operation.kind != kind) continue;
    const uint32_t communicator = trace.CommunicatorOf(GlobalRank{rank}, operation.communicator);
    if (!trace.communicators[communicator].name.starts_with(group + " ")) continue;
    ++calls.count;
    calls.elements += operation.count;
  }
  return calls;
}

}  // namespace railyard
