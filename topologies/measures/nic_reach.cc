// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/nic_reach.h"

#include <algorithm>

namespace railyard {
namespace {

constexpr size_t kRowsKeptMax = 64;

std::vector<DeviceId> Unique(std::vector<DeviceId> devices) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

// The largest of the hops to these switches; kUnreachable if one has no path.
uint32_t MostHops(const std::vector<uint32_t>& hops, const std::vector<DeviceId>& switches) {
  uint32_t most = 0;
  for (const DeviceId at : switches) most = std::max(most, hops[at]);
  return most;
}

}  // namespace

NicReach::NicReach(const FabricGraph& graph, const EcmpRouting& routing, uint32_t switch_hops_max)
    : graph_(graph),
      routing_(routing),
      switch_hops_max_(switch_hops_max),
      switches_of_nic_(graph.device_count()),
      is_known_(graph.device_count()) {}

const std::vector<DeviceId>& NicReach::SwitchesOf(DeviceId nic) {
  std::vector<DeviceId>& switches = switches_of_nic_[nic];
  if (is_known_[nic]) return switches;
  is_known_[nic] = true;
  for (const LinkId wire : graph_.WiresOfNic(nic)) {
    const DeviceId other = graph_.link_target(wire);
    const bool is_circuit =
        graph_.circuits && graph_.circuits->slots_of_cable.contains(graph_.link(wire).cable);
    if (graph_.device(other).kind != DeviceKind::kSwitch || is_circuit) {
      switches.clear();
      break;
    }
    switches.push_back(other);
  }
  return switches;
}

bool NicReach::SwitchesJoined(const std::vector<DeviceId>& switches) const {
  if (switches.size() < 2) return true;
  // A path up and then down need not lead on from where another ends.
  if (graph_.routing != RoutingPolicy::kUpDown) {
    const uint32_t most = MostHops(routing_.SwitchHopsTo(switches.front()), switches);
    if (most == EcmpRouting::kUnreachable) return false;
    if (most <= switch_hops_max_ / 2) return true;
  }
  return std::ranges::all_of(switches, [&](DeviceId at) {
    return MostHops(routing_.SwitchHopsTo(at), switches) <= switch_hops_max_;
  });
}

bool NicReach::AllJoined(const std::vector<DeviceId>& nics) {
  if (nics.size() < 2) return true;
  const size_t ports = SwitchesOf(nics.front()).size();
  if (ports == 0) return false;
  std::vector<std::vector<DeviceId>> switches(ports);  // by number of the port
  for (const DeviceId nic : nics) {
    const std::vector<DeviceId>& of_nic = SwitchesOf(nic);
    if (of_nic.size() != ports) return false;
    for (size_t port = 0; port < ports; ++port) switches[port].push_back(of_nic[port]);
  }
  return std::ranges::all_of(switches, [&](std::vector<DeviceId>& of_port) {
    return SwitchesJoined(Unique(std::move(of_port)));
  });
}

const std::vector<uint32_t>& NicReach::HopsTo(DeviceId at_switch) {
  const auto known = hops_to_.find(at_switch);
  if (known != hops_to_.end()) return known->second;
  if (hops_to_.size() >= kRowsKeptMax) hops_to_.clear();
  return hops_to_.emplace(at_switch, routing_.SwitchHopsTo(at_switch)).first->second;
}

bool NicReach::Joined(DeviceId from, DeviceId to) {
  const std::vector<DeviceId>& first = SwitchesOf(from);
  const std::vector<DeviceId>& last = SwitchesOf(to);
  if (first.empty() || last.empty()) return false;
  // Among ports of equal number, a NIC with fewer ports reuses its ports in turn.
  for (size_t port = 0; port < std::max(first.size(), last.size()); ++port) {
    const uint32_t hops = HopsTo(first[port % first.size()])[last[port % last.size()]];
    if (hops > switch_hops_max_) return false;
  }
  return true;
}

uint32_t NicReach::LongestHops(uint32_t enough) {
  std::vector<DeviceId> switches;
  for (DeviceId id{0}; id < graph_.device_count(); ++id) {
    if (graph_.device(id).kind != DeviceKind::kNic) continue;
    const std::vector<DeviceId>& of_nic = SwitchesOf(id);
    switches.insert(switches.end(), of_nic.begin(), of_nic.end());
  }
  switches = Unique(std::move(switches));
  uint32_t longest = 0;
  for (const DeviceId at : switches) {
    const std::vector<uint32_t> hops = routing_.SwitchHopsTo(at);
    if (at == switches.front() && MostHops(hops, switches) <= enough / 2) {
      return 2 * MostHops(hops, switches);
    }
    uint32_t most = 0;
    for (const DeviceId other : switches) {
      if (hops[other] != EcmpRouting::kUnreachable) most = std::max(most, hops[other]);
    }
    longest = std::max(longest, most);
  }
  return longest;
}

}  // namespace railyard
