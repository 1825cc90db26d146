// SPDX-License-Identifier: GPL-2.0-only
// Checks, before anything runs, that a study's scenarios accept its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/study.h"

namespace railyard {

// This limits the number of points that CheckRuns() loads, because more would take longer than a
// mistake is worth.
inline constexpr size_t kPointsCheckedMax = 256;

// Returns the first point of each value that its field cannot have, for instance 1.5 for a whole
// number. Every value of every axis is tried in the scenario's text, without loading the scenario.
// Returns nothing for a study of at most kPointsCheckedMax points, which are all loaded anyway.
std::vector<size_t> SuspiciousPoints(const Study& study);

// Returns the points that CheckRuns() loads, in order: all of them, or kPointsCheckedMax. Those
// are, as far as they fit: the suspicious ones; the first and the last; the first of each value
// that is written down, and of the least and greatest number of other axes; the first of each pair
// of such values of two of the first axes; others evenly spaced.
std::vector<size_t> PointsToCheck(const Study& study, const std::vector<size_t>& suspicious);

// Loads the scenarios of PointsToCheck() as `run` would, `jobs` at a time. Mistakes are findings; a
// mistake in an axis's value is reported at its place in the study.
void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics);

}  // namespace railyard
