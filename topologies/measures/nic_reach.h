// SPDX-License-Identifier: GPL-2.0-only
// Finds which NICs have paths to one another and whether these are short enough, for checks of all
// pairs of many NICs. Answers are shared by all NICs of the same switches rather than computed per
// pair.
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
  // any two ports of equal number. Returns false if some pair has none or if only a look at each
  // pair could tell. It runs one breadth-first search per port number where that suffices, else one
  // per switch that a NIC is cabled to.
  bool AllJoined(const std::vector<DeviceId>& nics);
  // Returns the same for two NICs. The distances of the last `from` are kept, so loop over `to` in
  // the inner loop. Returns false as well if a NIC has a cable to a device that is not a switch.
  bool Joined(DeviceId from, DeviceId to);
  // Returns the number of links between switches on the longest of the shortest paths between any
  // two switches with NICs; if that is below `enough`, some number between the two.
  uint32_t LongestHops(uint32_t enough);
  uint32_t switch_hops_max() const { return switch_hops_max_; }

 private:
  // Returns the switches at the other ends of a NIC's cables, in their order; empty if one end is
  // not a switch or a cable is not always connected.
  const std::vector<DeviceId>& SwitchesOf(DeviceId nic);
  // Returns true if all of these switches have paths to one another.
  bool SwitchesJoined(const std::vector<DeviceId>& switches) const;
  const std::vector<uint32_t>& HopsTo(DeviceId at_switch);

  const FabricGraph& graph_;
  const EcmpRouting& routing_;
  const uint32_t switch_hops_max_;
  std::vector<std::vector<DeviceId>> switches_of_nic_;  // by device
  std::vector<bool> is_known_;                          // the same: it is worked out
  std::map<DeviceId, std::vector<uint32_t>> hops_to_;   // of the switches of the last `from`
};

}  // namespace railyard
