// SPDX-License-Identifier: GPL-2.0-only
// A scenario's `faults`: what breaks, how, when, and for how long.
#pragma once

#include <vector>

#include "simulator/faults/fault_spec.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/job/job.h"

namespace railyard {

// `fabric` and `job` are nullptr where they could not be loaded: what refers to them is not looked
// up then. `seed`: of the run.
std::vector<FaultSpec> LoadFaults(const ProtoCursor& scenario, const FabricGraph* fabric,
                                  const Job* job, uint64_t seed, Diagnostics& diagnostics);

}  // namespace railyard
