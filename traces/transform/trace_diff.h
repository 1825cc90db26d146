// SPDX-License-Identifier: GPL-2.0-only
// Finds the first differences between two traces in the operations of their ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

struct TraceDifferences {
  uint64_t count = 0;
  std::vector<std::string> first;  // at most kDifferencesShown, one line each
  bool Any() const { return count > 0; }
};
inline constexpr size_t kDifferencesShown = 50;

// Compares operations rank by rank by their positions and communicators by their ranks; names,
// files and lines are ignored. The first differing operation of each rank is reported.
TraceDifferences DiffTraces(const Trace& a, const Trace& b);

}  // namespace railyard
