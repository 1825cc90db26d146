// SPDX-License-Identifier: GPL-2.0-only
// Loads the effect of a fault: its kind, and the fields of that kind.
#pragma once

#include <optional>

#include "simulator/faults/fault_spec.h"
#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns the kind; nullopt if it is missing, which is a finding. Fields that the kind does not
// have are findings too.
std::optional<FaultKind> LoadFaultKind(const ProtoCursor& fault, Diagnostics& diagnostics);

// Loads the effect of a fault whose kind is in `spec` into the rest of `spec`; for BACKGROUND_LOAD
// also the GPUs. `fabric` is nullptr if it could not be loaded.
void LoadFaultEffect(const ProtoCursor& fault, const FabricGraph* fabric, FaultTargets& targets,
                     FaultSpec& spec, Diagnostics& diagnostics);

}  // namespace railyard
