// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/fabric_attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/check.h"

namespace railyard {

std::string FabricAttribute(const FabricGraph& fabric, std::string_view name) {
  if (name == "name") return fabric.name;
  if (name == "routing") return std::string(RoutingPolicyName(fabric.routing));
  SIM_CHECK(name == "deadlock_avoidance", std::string(name));
  return std::string(DeadlockAvoidanceName(fabric.deadlock_avoidance));
}

std::string DeviceAttribute(const FabricGraph& fabric, DeviceId id, std::string_view name) {
  const Device& device = fabric.device(id);
  if (name == "name") return device.name;
  if (name == "kind") return std::string(DeviceKindName(device.kind));
  if (name == "coordinates") return fmt::format("{}", fmt::join(device.coordinates, "."));
  if (name == "forwarding_latency") {
    return device.forwarding_latency_ps == 0 ? std::string()
                                             : fmt::format("{}ps", device.forwarding_latency_ps);
  }
  if (device.kind == DeviceKind::kSwitch) return {};
  if (name == "server") return fmt::format("{}", device.server);
  SIM_CHECK(name == "local_index", std::string(name));
  return fmt::format("{}", device.local_index);
}

std::string CableAttribute(const FabricGraph& fabric, uint32_t cable, std::string_view name) {
  const LinkProperties& link = fabric.link(fabric.cables()[cable].forward);
  if (name == "tier") return std::string(TierName(link.tier));
  if (name == "rate") return fmt::format("{}bps", link.rate_bps);
  if (name == "delay") return fmt::format("{}ps", link.propagation_ps);
  SIM_CHECK(name == "lanes", std::string(name));
  return fmt::format("{}", link.lanes);
}

}  // namespace railyard
