// SPDX-License-Identifier: GPL-2.0-only
// A scenario's `faults`: what breaks, when, and for how long.
#pragma once

#include <vector>

#include "simulator/diagnostics/text_proto.h"
#include "simulator/faults/fault_spec.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// `fabric` is nullptr where it could not be loaded: the links are not looked up then.
std::vector<FaultSpec> LoadFaults(const ProtoCursor& scenario, const FabricGraph* fabric,
                                  Diagnostics& diagnostics);

}  // namespace railyard
