// SPDX-License-Identifier: GPL-2.0-only
// Finds which NICs have paths to each other and whether these are short enough, for checks of all
// pairs of many NICs. NICs of the same switches share an answer, so none is computed per pair.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class NicReach {
 public:
  // Both must outlive this. Only paths of at most `switch_hops_max` links between switches count,
  // and Valiant's detours are not considered.
  NicReach(const FabricGraph& graph, const EcmpRouting& routing, uint32_t switch_hops_max);

  // Returns true if every two of these NICs have a path over any of their cables, and also between
  // any two ports of equal number. Returns false if some pair has no path or if each pair would
  // have to be examined. It runs one breadth-first search per port number if that suffices, else
  // one per switch that is cabled to a NIC.
  bool AllJoined(const std::vector<DeviceId>& nics);
  // Returns the same for two NICs. The distances of the last `from` are kept, so loop over `to` in
  // the inner loop. Returns false as well if a NIC has a cable to a device that is not a switch.
  bool Joined(DeviceId from, DeviceId to);
  // Returns the number of links between switches on the longest of the shortest paths between any
  // two switches with NICs; if that is below `enough`, any number from it to `enough`.
  uint32_t LongestHops(uint32_t enough);
  uint32_t switch_hops_max() const { return switch_hops_max_; }

 private:
  // Returns the switches at the other ends of a NIC's cables, in their order; empty if one end is
  // not a switch or a cable is not always connected.
  const std::vector<DeviceId>& SwitchesOf(DeviceId nic);
  // Returns true if all of these switches have paths to each other.
  bool SwitchesJoined(const std::vector<DeviceId>& switches) const;
  const std::vector<uint32_t>& HopsTo(DeviceId at_switch);

  const FabricGraph& graph_;
  const EcmpRouting& routing_;
  const uint32_t switch_hops_max_;
  std::vector<std::vector<DeviceId>> switches_of_nic_;  // by device
  std::vector<bool> is_known_;                          // by device: its entry above is computed
  std::map<DeviceId, std::vector<uint32_t>> hops_to_;   // of the switches of the last `from`
};

}  // namespace railyard
