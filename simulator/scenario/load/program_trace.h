// SPDX-License-Identifier: GPL-2.0-only
// Makes a trace of a scenario's `program`: collectives over all GPUs of the fabric, one after the
// other.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "traces/trace/trace.h"

namespace railyard {

// Sizes are nccl-tests' (its float elements; AllGather, ReduceScatter and AllToAll, Gather and
// Scatter: the total over the ranks; SendRecv and Permutation: what each rank sends). `seed` draws
// permutations. `program` is a cursor on a railyard.protos.Program. nullopt after an error. With 0
// ranks, because the fabric could not be loaded, only what does not depend on them is checked and
// the result is nullopt.
std::optional<Trace> MakeProgramTrace(const ProtoCursor& program, uint32_t rank_count,
                                      uint64_t seed, Diagnostics& diagnostics);

// Most calls over all ranks; more would not fit a usual machine's memory.
inline constexpr uint64_t kProgramCallsMax = 20'000'000;

}  // namespace railyard
