// SPDX-License-Identifier: GPL-2.0-only
// Which NICs have paths to one another, and whether these are short enough, for checks that concern
// all pairs of many NICs: what holds for the switches they hang on need not be asked for each pair.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class NicReach {
 public:
  // Both must outlive this. Paths have at most `switch_hops_max` links between switches, and
  // Valiant's detours are left out of them.
  NicReach(const FabricGraph& graph, const EcmpRouting& routing, uint32_t switch_hops_max);

  // True if every two of these NICs have a path, over any of their cables and between any two ports
  // of equal number as well; false if some have none, or if that takes a look at each pair. A
  // breadth- first search per number of a port where that answers it, one per switch that a NIC
  // hangs on else.
  bool AllJoined(const std::vector<DeviceId>& nics);
  // The same of two NICs; keeps the distances of the last `from`, so ask by rows. False as well if
  // a NIC has a cable to what is no switch.
  bool Joined(DeviceId from, DeviceId to);
  // Links between switches on the longest of the shortest paths between any two switches that NICs
  // hang on, or, if that is below `enough`, some number between the two.
  uint32_t LongestHops(uint32_t enough);
  uint32_t switch_hops_max() const { return switch_hops_max_; }

 private:
  // The switches at the other ends of a NIC's cables, in their order; empty where one is no switch,
  // or is not always there.
  const std::vector<DeviceId>& SwitchesOf(DeviceId nic);
  // Whether all of these switches have paths to one another.
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
