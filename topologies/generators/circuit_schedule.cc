// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/circuit_schedule.h"

#include "simulator/diagnostics/check.h"
#include "topologies/graph/fabric_copy.h"

namespace railyard {

FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot) {
  SIM_CHECK(fabric.circuits && slot < fabric.circuits->slots, "a slot the fabric does not have");
  return WithCables(fabric, [&](uint32_t cable) { return fabric.circuits->IsThere(cable, slot); });
}

}  // namespace railyard
