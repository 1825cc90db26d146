// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

namespace railyard {

// The path of every number that a summary.json can have, with N for the numbers of array elements:
// "collectives.stretch.max", "faults.N.time_to_recover_ps". Sorted.
std::vector<std::string> SummaryFigures();

}  // namespace railyard
