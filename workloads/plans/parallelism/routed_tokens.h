// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "workloads/plans/plan.h"

namespace railyard {

// The tokens of a whole job; a token counts once for each of its experts and each forward pass of a
// layer.
struct RoutedTokens {
  uint64_t sent = 0;
  uint64_t dropped = 0;  // above the experts' capacity
};
// Precondition: the plan is expert parallel. Draws again what Synthesize draws.
RoutedTokens RoutedTokensOf(const Plan& plan);

}  // namespace railyard
