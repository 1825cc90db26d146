// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Returns the default of nic.link_aggregation with Amazon's plug-in. To it the ports of a NIC,
// which stand for the NICs of a GPU, are devices, unless paths cannot be bound to ports.
bool AwsLibfabricAggregates(const FabricGraph& fabric);

// Loads from `nccl` how connections use queue pairs in that version (encoded as by ncclGetVersion),
// and checks the requirements of ports that are not aggregated. `scenario` is a cursor on the whole
// scenario; `fabric` is nullptr if it could not be loaded.
NetIbSettings LoadNetIb(const ProtoCursor& scenario, NetPlugin net, uint32_t version,
                        const NicSettings& nic, const FabricGraph* fabric,
                        Diagnostics& diagnostics);

}  // namespace railyard
