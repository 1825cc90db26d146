// SPDX-License-Identifier: GPL-2.0-only
// Small jobs that tests transform.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"

namespace railyard::testing {

// Fails the test if the calls of different ranks do not match.
void ExpectMatches(const Trace& trace);

// A call of so many bytes.
TraceOperation Call(CollectiveKind kind, uint32_t communicator, uint64_t count);

// Ranks 0 to 3 as 2 tensor x 2 data parallel ones: an AllReduce of 100 in the tensor group, in the
// data group an AllGather of 30 a rank and an AllReduce of 80, twice, as two iterations.
Trace TwoByTwo();

// Ranks 0 to 3 as data parallel ones, of which 0 and 1, and 2 and 3, share the experts: an AllToAll
// of 60 to each rank, an AllReduce of 80 among the ranks with the same experts, one of 100 of all.
Trace TwoByTwoExperts();

// Four stages, with a communicator for each two neighbors: two forward passes of 70 bytes, two
// backward ones of 50, and an AllReduce of 12 of the first and the last.
Trace FourStages();

}  // namespace railyard::testing
