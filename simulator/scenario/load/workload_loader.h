// SPDX-License-Identifier: GPL-2.0-only
// Loads a scenario's `workload`, which consists of NCCL logs, a trace, a program or a plan, and
// checks that it can be replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "simulator/scenario/schema/loaded_workload.h"
#include "simulator/text_proto/text_proto.h"
#include "traces/trace/trace.h"

namespace railyard {

// Loads the railyard.protos.Workload at `workload`. `gpu_count` is 0 if the fabric could not be
// loaded. `program_ranks` is the number of ranks of a program that does not state it; 0 if it must.
// `seed` is for the workload's random draws. `calls` are those that `workload.trace` names, if a
// program has them in memory. Returns nullopt after an error.
std::optional<LoadedWorkload> LoadWorkload(const ProtoCursor& workload, uint32_t gpu_count,
                                           uint32_t program_ranks, uint64_t seed,
                                           Diagnostics& diagnostics,
                                           std::shared_ptr<const Trace> calls = nullptr);

}  // namespace railyard
