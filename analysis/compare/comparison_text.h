// SPDX-License-Identifier: GPL-2.0-only
// Renders comparisons as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/comparison.h"

namespace railyard {

// Returns a sentence with the verdict, a table by kind, and the bytes per tier if they differ.
std::string ComparisonText(const Comparison& comparison, double threshold);

// Returns the sentence with the verdict, and sentences on other differences (statuses, collectives
// without a partner), with these names of the results.
std::string ComparisonVerdict(const Comparison& comparison, const std::string& second,
                              const std::string& first);
std::vector<std::string> ComparisonNotes(const Comparison& comparison, const std::string& second,
                                         const std::string& first);

// Returns "+12.30 %" for 0.123; a factor if a percentage would be hard to read.
std::string DifferenceText(double difference);
// These return a dash for a comparison without pairs.
std::string DifferenceText(const KindComparison& kind);
std::string RatioText(const KindComparison& kind, double ratio);
// Returns "+1.00 % to +3.00 %".
std::string IntervalText(const KindComparison& kind);

// Returns one object: `threshold`, `exceeds` and an array `comparisons`, as docs/results.md
// describes.
std::string ComparisonsJson(const std::vector<Comparison>& comparisons, double threshold);

}  // namespace railyard
