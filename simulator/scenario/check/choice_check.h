// SPDX-License-Identifier: GPL-2.0-only
// Whether every collective of a job can be replayed as what its log, the scenario or NCCL's tuner
// says.
#pragma once

#include "simulator/scenario/load/workload_loader.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// `scenario`: a cursor on the whole, with a fabric and a workload that were loaded. An error for
// each pair of algorithm and protocol that cannot be replayed, at the field that demands it.
void CheckChoices(const ProtoCursor& scenario, const FabricGraph& graph,
                  const LoadedWorkload& workload, const NcclSettings& nccl,
                  Diagnostics& diagnostics);

}  // namespace railyard
