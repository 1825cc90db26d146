// SPDX-License-Identifier: GPL-2.0-only
// Whether pauses can wait for each other in a circle: the channel dependency graph of a fabric's
// routes (Dally, Seitz: "Deadlock-free message routing in multiprocessor interconnection networks",
// 1987) and its strongly connected components (Boost.Graph).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct DeadlockReport {
  // Links of a circle, each of which can wait for the next and the last for the first, with their
  // class where there are several ("router0>router1 class 1"); empty if there is none.
  std::vector<std::string> cycle;
  uint32_t classes = 1;       // lossless classes that the routes need; 0 for lossy ones
  bool is_sampled = false;    // only the routes to some switches were looked at
  uint32_t destinations = 0;  // switches with NICs whose routes were looked at
};

// Looks at all routes that EcmpRouting may take between NICs with every link up, as the fabric's
// `routing` and `deadlock_avoidance` say. Fabrics of many switches are looked at by the routes to
// a sample of switches, unless no route goes down a tier and up again, which proves it.
DeadlockReport FindDeadlock(const FabricGraph& fabric);

// DeadlockReport::classes alone, which needs no look at what waits for what.
uint32_t CountLosslessClasses(const FabricGraph& fabric);

}  // namespace railyard
