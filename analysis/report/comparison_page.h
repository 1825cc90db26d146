// SPDX-License-Identifier: GPL-2.0-only
// Makes the page that compares results of runs: verdicts, differences with their confidence, and
// small multiples, one panel for each result or kind of collective.
#pragma once

#include <span>
#include <string>

#include "analysis/compare/comparison.h"

namespace railyard {

// Returns the page of comparisons whose first result is the same; `threshold` is a share, 0.01 for
// 1 %. Reads the results' directories. Throws UnreadableResult if one does not hold the tables that
// a run writes, and EnvironmentError if !CanWriteReports(). Precondition: `comparisons` is not
// empty.
std::string ComparisonPage(std::span<const Comparison> comparisons, double threshold);

}  // namespace railyard
