// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "simulator/scenario/workload_loader.h"
#include "topologies/fabric_graph.h"
#include "workloads/nccl_channels.h"

namespace railyard {

// `nic_failover`: which NICs rings avoid, and how, into `nccl`. Every fault of it is a finding.
void LoadNicFailover(const ProtoCursor& scenario, const FabricGraph& fabric,
                     const LoadedWorkload& workload, NcclSettings& nccl, Diagnostics& diagnostics);

}  // namespace railyard
