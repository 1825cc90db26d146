// SPDX-License-Identifier: GPL-2.0-only
// What a fabric's network costs and draws: everything outside its servers, by the part.
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

// A switch costs by the ports that are cabled, not by the box: sums do not jump with the size, and
// a small fabric is charged for no empty ports. Of cables that circuits stand for there are as
// many, and as many ports of switches, as exist at a time; each end has a port of a circuit switch.
NetworkCost CostOf(const FabricGraph& fabric, const Prices& prices);

}  // namespace railyard
