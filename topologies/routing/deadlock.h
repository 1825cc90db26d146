// SPDX-License-Identifier: GPL-2.0-only
// Determines whether pauses can wait for each other in a cycle, by the strongly connected
// components (Boost.Graph) of the channel dependency graph of a fabric's routes (Dally, Seitz:
// "Deadlock-free message routing in multiprocessor interconnection networks", 1987).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct DeadlockReport {
  // The links of a cycle in which each can wait for the next and the last for the first, with the
  // class if there are several ("router0>router1 class 1"); empty if there is no cycle.
  std::vector<std::string> cycle;
  uint32_t classes = 1;       // lossless classes that the routes need; 0 if they are lossy
  bool is_sampled = false;    // only the routes to some switches were examined
  uint32_t destinations = 0;  // switches with NICs whose routes were examined
};

// Examines all routes that EcmpRouting may take between NICs with every link up, by the fabric's
// `routing` and `deadlock_avoidance`. In fabrics of many switches only the routes to a sample of
// switches are examined, unless no route goes down a tier and up again, which proves the absence of
// cycles.
DeadlockReport FindDeadlock(const FabricGraph& fabric);

// Returns DeadlockReport::classes alone, without building the dependency graph.
uint32_t CountLosslessClasses(const FabricGraph& fabric);

}  // namespace railyard
