// SPDX-License-Identifier: GPL-2.0-only
// Loads a scenario's `jobs`: several workloads on different GPUs, combined into one job.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/scenario/schema/loaded_workload.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns the combined job. `scenario` is a cursor on the whole scenario, which has `jobs`;
// `fabric` is nullptr if it could not be loaded. Returns nullopt after an error.
std::optional<LoadedWorkload> LoadJobs(const ProtoCursor& scenario, const FabricGraph* fabric,
                                       uint64_t seed, Diagnostics& diagnostics);

}  // namespace railyard
