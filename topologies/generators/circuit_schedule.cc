// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/circuit_schedule.h"

#include "simulator/diagnostics/check.h"

namespace railyard {

FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot) {
  SIM_CHECK(fabric.circuits && slot < fabric.circuits->slots, "a slot the fabric does not have");
  FabricGraph at;
  at.name = fabric.name;
  at.nvlink = fabric.nvlink;
  at.routing = fabric.routing;
  at.deadlock_avoidance = fabric.deadlock_avoidance;
  for (DeviceId id = 0; id < fabric.device_count(); ++id) at.AddDevice(fabric.device(id));
  for (uint32_t i = 0; i < fabric.cables().size(); ++i) {
    if (!fabric.circuits->IsThere(i, slot)) continue;
    const LinkId link = fabric.cables()[i].forward;
    const LinkProperties& properties = fabric.link(link);
    at.AddCable(fabric.link_source(link), fabric.link_target(link),
                {.tier = properties.tier,
                 .rate_bps = properties.rate_bps,
                 .propagation_ps = properties.propagation_ps,
                 .lanes = properties.lanes});
  }
  return at;
}

}  // namespace railyard
