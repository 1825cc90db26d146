// SPDX-License-Identifier: GPL-2.0-only
// Servers cabled to each other as a job's traffic asks for, with few cables each (Wang et al.:
// "TopoOpt", NSDI 2023, algorithm 1):
//
//   NICs of server<s> ──NIC_LEAF── router<s>, a part of the server
//   router<s> ──DIRECT── `rings` rings through all servers, of strides 1, then about N^(1/rings), …
//             ──DIRECT── degree - 2·rings further routers: in each of so many rounds a matching of
//                        the greatest traffic, whose pairs then count for half
//
// Rings join all and carry what all take part in; matchings give pairs of a pipeline or an AllToAll
// cables of their own. Pairs may get parallel cables. Routed by shortest paths over other servers'
// routers; TopoOpt's joint search over parallelization and routes is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

// The traffic between two servers; the direction does not matter.
struct ServerDemand {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t bytes = 0;
};

struct DirectConnectSpec {
  NetworkSpec network{};
  uint32_t degree = 4;
  uint32_t rings = 1;
  LinkSpec direct{};
  std::vector<ServerDemand> demands{};
};

std::vector<SpecProblem> CheckDirectConnect(const DirectConnectSpec& spec);
// Precondition: CheckDirectConnect(spec) is empty.
FabricGraph MakeDirectConnect(const DirectConnectSpec& spec);

}  // namespace railyard
