// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "workloads/plans/plan/plan.h"

namespace railyard {

// Counts the tokens of a whole job; a token counts once for each of its experts and each forward
// pass of a layer.
struct RoutedTokens {
  uint64_t sent = 0;
  uint64_t dropped = 0;  // above the experts' capacity
};
// Returns the counts, for which it repeats the draws of Synthesize(). Precondition: the plan is
// expert parallel.
RoutedTokens RoutedTokensOf(const Plan& plan);

}  // namespace railyard
