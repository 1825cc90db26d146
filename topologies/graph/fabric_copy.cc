// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/fabric_copy.h"

namespace railyard {

FabricGraph CopyOf(const FabricGraph& fabric) {
  FabricGraph copy = WithCables(fabric, [](uint32_t) { return true; });
  copy.circuits = fabric.circuits;
  return copy;
}

FabricGraph WithCables(const FabricGraph& fabric,
                       const std::function<bool(uint32_t cable)>& keeps) {
  FabricGraph copy;
  copy.name = fabric.name;
  copy.nvlink = fabric.nvlink;
  copy.routing = fabric.routing;
  copy.deadlock_avoidance = fabric.deadlock_avoidance;
  for (DeviceId id{0}; id < fabric.device_count(); ++id) copy.AddDevice(fabric.device(id));
  for (uint32_t i = 0; i < fabric.cables().size(); ++i) {
    if (!keeps(i)) continue;
    const LinkId link = fabric.cables()[i].forward;
    const LinkProperties& properties = fabric.link(link);
    copy.AddCable(fabric.link_source(link), fabric.link_target(link),
                  {.tier = properties.tier,
                   .rate_bps = properties.rate_bps,
                   .propagation_ps = properties.propagation_ps,
                   .lanes = properties.lanes});
  }
  return copy;
}

}  // namespace railyard
