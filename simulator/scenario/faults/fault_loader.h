// SPDX-License-Identifier: GPL-2.0-only
// Loads a scenario's `faults`: targets, effects and times.
#pragma once

#include <vector>

#include "simulator/faults/fault_spec.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/job/job.h"

namespace railyard {

// Returns the faults. `fabric` and `job` are nullptr if they could not be loaded; fields that refer
// to them are not checked then. `seed` is that of the run.
std::vector<FaultSpec> LoadFaults(const ProtoCursor& scenario, const FabricGraph* fabric,
                                  const Job* job, uint64_t seed, Diagnostics& diagnostics);

}  // namespace railyard
