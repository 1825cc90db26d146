// SPDX-License-Identifier: GPL-2.0-only
// Computes the price and the power of a fabric's network, which is everything outside its servers,
// by part.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/prices/prices.h"

namespace railyard {

struct PartCost {
  NetworkPart part = NetworkPart::kSwitchPort;
  uint64_t count = 0;
  double cost = 0;   // 0 if the prices have none
  double watts = 0;  // 0 if the prices have none
  bool has_cost = false;
  bool has_watts = false;
};

struct NetworkCost {
  double cost = 0;
  double watts = 0;
  std::vector<PartCost> parts;  // the parts of the fabric, in the order of NetworkPart
};

// Returns the cost. Switches are charged by cabled port, not by box, so totals do not jump with the
// size and a small fabric is not charged for empty ports. Cables that stand for optical circuits,
// and their switch ports, are charged for as many as exist at one time; each end also uses a port
// of a circuit switch.
NetworkCost CostOf(const FabricGraph& fabric, const Prices& prices);

}  // namespace railyard
