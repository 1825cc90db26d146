// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/job/job.h"
#include "workloads/nccl/gpu_costs.h"

namespace railyard {

// Returns whether the scenario requests flow mode.
bool AsksForFlows(const ProtoCursor& scenario);

// Reports everything in a scenario of flow mode whose effect depends on packets. `fabric` and `job`
// may be null.
void CheckFlowMode(const ProtoCursor& scenario, NetPlugin net, const FabricGraph* fabric,
                   const Job* job, Diagnostics& diagnostics);

// Reports the same where the scenario's transport sends no packets over the network
// (NetworkStackTraits), and settings of NICs' queue pairs.
void CheckTransport(const ProtoCursor& scenario, const Job* job, Diagnostics& diagnostics);

}  // namespace railyard
