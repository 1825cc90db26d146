// SPDX-License-Identifier: GPL-2.0-only
// Determines the links and GPUs that a fault affects from the cables and devices that it names.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/faults/fault_spec.h"
#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns a hash of the name, so that a fault's draws depend on its own name only.
uint64_t HashOfName(std::string_view name);

// Resolves the targets of one fault. Every mismatch is a finding.
class FaultAim {
 public:
  FaultAim(const ProtoCursor& fault, const FabricGraph& fabric, Diagnostics& diagnostics)
      : cursor_(fault), fabric_(fabric), diagnostics_(diagnostics) {}

  // Keeps the targets that the fault's `draw` selects, in the order of their names.
  void Draw(uint64_t seed, std::vector<FaultTarget>& targets);
  // Checks targets that are stated to be links between NICs and ToRs, or ToRs.
  void CheckComponents(const std::vector<FaultTarget>& targets);
  // Sets the links and GPUs of `fault`. Precondition: there is at least one target.
  void Aim(const std::vector<FaultTarget>& targets, FaultSpec& fault);

 private:
  void AimAtGpus(const std::vector<FaultTarget>& targets, FaultSpec& fault);
  void CheckLanes(FaultSpec& fault);

  const ProtoCursor& cursor_;
  const FabricGraph& fabric_;
  Diagnostics& diagnostics_;
};

}  // namespace railyard
