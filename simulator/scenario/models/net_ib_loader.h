// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Loads from `nccl` how connections use queue pairs in that version (encoded as by ncclGetVersion),
// and checks the requirements of ports that are not aggregated. `scenario` is a cursor on the whole
// scenario; `fabric` is nullptr if it could not be loaded.
NetIbSettings LoadNetIb(const ProtoCursor& scenario, uint32_t version, const NicSettings& nic,
                        const FabricGraph* fabric, Diagnostics& diagnostics);

}  // namespace railyard
