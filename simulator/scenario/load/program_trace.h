// SPDX-License-Identifier: GPL-2.0-only
// Makes a trace from a scenario's `program`: collectives over all ranks of the job, or over groups
// of them, one after the other.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "traces/trace/trace.h"

namespace railyard {

// Returns the trace of the railyard.protos.Program at `program`; nullopt after an error. Sizes are
// those of nccl-tests (with its float elements; for AllGather, ReduceScatter, AllToAll, Gather and
// Scatter, the total over the ranks; for SendRecv and Permutation, the bytes that each rank sends).
// `seed` draws permutations. With 0 ranks, because the fabric could not be loaded, only the parts
// that do not depend on them are checked and the result is nullopt.
std::optional<Trace> MakeProgramTrace(const ProtoCursor& program, uint32_t rank_count,
                                      uint64_t seed, Diagnostics& diagnostics);

// All ranks together may have this number of calls; more would not fit a usual machine's memory.
inline constexpr uint64_t kProgramCallsMax = 20'000'000;

}  // namespace railyard
