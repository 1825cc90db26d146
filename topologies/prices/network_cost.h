// SPDX-License-Identifier: GPL-2.0-only
// The price and the power of a fabric's network, which is everything outside its servers, by part.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/prices/prices.h"

namespace railyard {

struct PartCost {
  NetworkPart part = NetworkPart::kSwitchPort;
  uint64_t count = 0;
  double cost = 0;   // 0 where the prices have none
  double watts = 0;  // the same
  bool has_cost = false;
  bool has_watts = false;
};

struct NetworkCost {
  double cost = 0;
  double watts = 0;
  std::vector<PartCost> parts;  // those the fabric has, in the order of NetworkPart
};

// A switch costs by its cabled ports, not by the box: totals do not jump with the size, and a small
// fabric is not charged for empty ports. Cables that stand for optical circuits count as often as
// they exist at one time, and so do their switch ports; each of their ends also uses a port of a
// circuit switch.
NetworkCost CostOf(const FabricGraph& fabric, const Prices& prices);

}  // namespace railyard
