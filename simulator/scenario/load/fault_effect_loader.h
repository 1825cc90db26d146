// SPDX-License-Identifier: GPL-2.0-only
// What a fault does: its kind, and the fields that a kind has.
#pragma once

#include <optional>

#include "simulator/faults/fault_spec.h"
#include "simulator/scenario/load/fault_targets.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// The kind; nullopt: there is none, which is a finding as any field is that the kind does not have.
std::optional<FaultKind> LoadFaultKind(const ProtoCursor& fault, Diagnostics& diagnostics);

// What a fault of the kind in `spec` does, into the rest of it; of BACKGROUND_LOAD also between
// which GPUs. `fabric` is nullptr where it could not be loaded.
void LoadFaultEffect(const ProtoCursor& fault, const FabricGraph* fabric, FaultTargets& targets,
                     FaultSpec& spec, Diagnostics& diagnostics);

}  // namespace railyard
