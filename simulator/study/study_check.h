// SPDX-License-Identifier: GPL-2.0-only
// Checks what a study's scenarios make of its values, before anything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/study.h"

namespace railyard {

// The most points that CheckRuns() loads: more would take longer than a mistake is worth.
inline constexpr size_t kPointsCheckedMax = 256;

// Returns the first points of values that are no values of their fields, for instance 1.5 of a
// whole number, in a study of more than kPointsCheckedMax points: every value of every axis is
// tried, without loading scenarios.
std::vector<size_t> SuspiciousPoints(const Study& study);

// Returns the points that CheckRuns() loads, in order: all of them, or kPointsCheckedMax. Those
// are, as far as they fit: the suspicious ones; the first of each value that is written down and of
// the least and greatest number of other axes; the first of each pair of such values of two axes;
// others evenly spaced.
std::vector<size_t> PointsToCheck(const Study& study, const std::vector<size_t>& suspicious);

// Loads the scenarios of PointsToCheck() as `run` would, `jobs` at a time. Mistakes are findings;
// that of an axis's value is at its place in the study.
void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics);

}  // namespace railyard
