// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "simulator/scenario/restart_settings.h"
#include "simulator/scenario/workload_loader.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// `restart`. Puts checkpoints into the programs of the job, and ranks without a program where spare
// servers are; these where the fabric is known.
RestartSettings LoadRestart(const ProtoCursor& scenario, const FabricGraph* fabric,
                            LoadedWorkload& workload, Diagnostics& diagnostics);

}  // namespace railyard
