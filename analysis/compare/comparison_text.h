// SPDX-License-Identifier: GPL-2.0-only
// Renders comparisons as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/comparison.h"

namespace railyard {

// Returns a sentence with the verdict, a table by kind, and the bytes per tier where they differ.
std::string ComparisonText(const Comparison& comparison, double threshold);

// Returns one object: `threshold`, `exceeds` and an array `comparisons`, as docs/results.md
// describes.
std::string ComparisonsJson(const std::vector<Comparison>& comparisons, double threshold);

}  // namespace railyard
