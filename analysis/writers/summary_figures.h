// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

namespace railyard {

// Returns the sorted paths of all numbers that a summary.json can have, with N for the index of an
// array element: "collectives.stretch.max", "faults.N.time_to_recover_ps".
std::vector<std::string> SummaryFigures();

}  // namespace railyard
