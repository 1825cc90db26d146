// SPDX-License-Identifier: GPL-2.0-only
// Describes a fabric for `topo show`, as text and as JSON (keys: docs/topologies.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/measures/fabric_measures.h"
#include "topologies/measures/preflight.h"
#include "topologies/prices/network_cost.h"
#include "topologies/prices/prices.h"

namespace railyard {

// Names a requested maximum flow from some servers to others, by their numbers.
struct AskedFlow {
  std::string from;  // as requested
  std::string to;
  uint64_t bps = 0;
};

struct TopoDescription {
  std::string name;
  RoutingPolicy routing = RoutingPolicy::kShortest;
  DeadlockAvoidance deadlock_avoidance = DeadlockAvoidance::kRoutes;
  FabricMeasures measures;  // with circuits, of their first configuration
  std::vector<PreflightFinding> preflight;
  std::optional<CircuitSchedule> circuits;
  NetworkCost cost;
  Prices prices;
  std::optional<AskedFlow> flow;
};

TopoDescription DescribeFabric(const FabricGraph& fabric, const Prices& prices);
std::string ToText(const TopoDescription& description);
std::string ToJson(const TopoDescription& description);

}  // namespace railyard
