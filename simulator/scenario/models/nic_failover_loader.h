// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/scenario/schema/loaded_workload.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Loads `nic_failover` into `nccl`: the policy for data of NICs that fail, and the NICs to avoid
// from the start. Every mistake in it is a finding.
void LoadNicFailover(const ProtoCursor& scenario, const FabricGraph& fabric,
                     const LoadedWorkload& workload, const NicSettings& nic,
                     const NetIbSettings& net_ib, NcclSettings& nccl, Diagnostics& diagnostics);

}  // namespace railyard
