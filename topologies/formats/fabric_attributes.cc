// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/fabric_attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/check.h"

namespace railyard {

std::string FabricAttribute(const FabricGraph& fabric, std::string_view name) {
  if (name == "name") return fabric.name;
  if (name == "routing") return std::string(RoutingPolicyName(fabric.routing));
  if (name == "deadlock_avoidance") {
    return std::string(DeadlockAvoidanceName(fabric.deadlock_avoidance));
  }
  if (!fabric.circuits) return {};
  const CircuitSchedule& circuits = *fabric.circuits;
  if (name == "circuit_slots") return fmt::format("{}", circuits.slots);
  if (name == "slot_duration") return fmt::format("{}ps", circuits.slot_ps);
  if (name == "dark_time") return fmt::format("{}ps", circuits.dark_ps);
  SIM_CHECK(name == "drain_time", std::string(name));
  return fmt::format("{}ps", circuits.drain_ps);
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
  if (name == "compute_capability") {
    return device.compute_capability == 0 ? std::string()
                                          : fmt::format("{}", device.compute_capability);
  }
  if (name == "peer_access") return device.peer_access ? "" : "false";
  if (name == "cpu") return std::string(CpuVendorName(device.cpu));
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
  if (name == "lanes") return fmt::format("{}", link.lanes);
  SIM_CHECK(name == "slots", std::string(name));
  if (!fabric.circuits) return {};
  const auto slots = fabric.circuits->slots_of_cable.find(cable);
  if (slots == fabric.circuits->slots_of_cable.end()) return {};
  return fmt::format("{}", fmt::join(slots->second, "."));
}

}  // namespace railyard
