// SPDX-License-Identifier: GPL-2.0-only
// Determines when the switches and NICs of a fabric have new routes after a link changed its state.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/routing_delays.h"
#include "topologies/routing/routing.h"

namespace railyard {

// Describes how the news of a link's change spreads in waves: the devices of a wave have new routes
// at the same instant.
struct LinkNews {
  LinkId link{0};
  std::vector<uint32_t> wave_of_device;
  std::vector<int64_t> times_ps;  // by wave, since the link changed; ascending
  uint32_t next = 0;              // wave
};

// Plans the news of a change of `link`. A device at the link's end learns of the change after its
// detection delay, any other device one hop delay after its neighbour. Each has new routes after
// its convergence delay.
LinkNews PlanLinkNews(const FabricGraph& graph, const EcmpRouting& routing,
                      const RoutingDelays& delays, LinkId link);

// Returns the time in ps from the link's change until the first device at its ends detects it.
int64_t FirstDetectionPs(const FabricGraph& graph, const RoutingDelays& delays, LinkId link);

}  // namespace railyard
