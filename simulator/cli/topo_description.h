// SPDX-License-Identifier: GPL-2.0-only
// What `topo show` says about a fabric, as text and as JSON (keys: docs/topologies.md).
#pragma once

#include <string>
#include <vector>

#include "topologies/fabric_graph.h"
#include "topologies/fabric_measures.h"
#include "topologies/preflight.h"

namespace railyard {

struct TopoDescription {
  std::string name;
  RoutingPolicy routing = RoutingPolicy::kShortest;
  DeadlockAvoidance deadlock_avoidance = DeadlockAvoidance::kRoutes;
  FabricMeasures measures;
  std::vector<PreflightFinding> preflight;
};

TopoDescription DescribeFabric(const FabricGraph& fabric);
std::string ToText(const TopoDescription& description);
std::string ToJson(const TopoDescription& description);

}  // namespace railyard
