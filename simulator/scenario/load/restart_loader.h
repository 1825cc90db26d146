// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <vector>

#include "simulator/scenario/schema/loaded_workload.h"
#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Loads `restart` of the scenario and of its jobs, by part of the job. Adds checkpoints to the
// programs and, if the fabric is known, ranks without a program for spare servers.
std::vector<RestartSettings> LoadRestarts(const ProtoCursor& scenario, const FabricGraph* fabric,
                                          LoadedWorkload& workload, Diagnostics& diagnostics);

}  // namespace railyard
