// SPDX-License-Identifier: GPL-2.0-only
// Generates servers with few cables each, which are cabled to each other according to a job's
// traffic (Wang et al.: "TopoOpt", NSDI 2023, algorithm 1):
//
//   NICs of server<s> ──NIC_LEAF── router<s>, a part of the server
//   router<s> ──DIRECT── `rings` rings through all servers, of strides 1, then about N^(1/rings), …
//             ──DIRECT── degree - 2·rings further routers: each round adds a matching of the
//                        greatest traffic, and the traffic of its pairs is then halved
//
// Rings join all servers and carry collectives of all ranks; matchings give separate cables to the
// pairs of a pipeline or an AllToAll. Pairs may get parallel cables. Routes are shortest paths over
// other servers' routers; TopoOpt's joint search over parallelization and routes is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

// Describes the traffic between two servers; the direction does not matter.
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
