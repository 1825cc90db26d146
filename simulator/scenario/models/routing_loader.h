// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/fabric/routing_delays.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Loads `routing`; the devices that it names are resolved if the fabric is known.
RoutingDelays LoadRouting(const ProtoCursor& scenario, const FabricGraph* fabric,
                          Diagnostics& diagnostics);

}  // namespace railyard
