// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/units/units.h"

namespace railyard {

// How long the fabric takes to act on a link that changed state. Until both have passed, packets
// are still sent into a dead link and lost there.
struct RoutingDelays {
  // Loss of signal to the port's driver knowing of it: a PHY debounces for about 10 ms (IEEE 802.3
  // link_fail_inhibit class timers; the default of common switch systems).
  int64_t detection_ps = 10 * kPsPerMs;
  // From there to new routes in every switch: BGP with fast fall-over in a two-tier fabric is of
  // the order of 100 ms.
  int64_t convergence_ps = 100 * kPsPerMs;
};

}  // namespace railyard
