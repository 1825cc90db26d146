// SPDX-License-Identifier: GPL-2.0-only
// Where two traces differ in what their ranks do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

struct TraceDifferences {
  uint64_t count = 0;
  std::vector<std::string> first;  // at most kDifferencesShown, a line each
  bool Any() const { return count > 0; }
};
inline constexpr size_t kDifferencesShown = 50;

// Operations are compared rank by rank by their places, communicators by their ranks: names, files
// and lines are not. Of each rank the first operation that differs is told.
TraceDifferences DiffTraces(const Trace& a, const Trace& b);

}  // namespace railyard
