// SPDX-License-Identifier: GPL-2.0-only
// Prints the results of a study for a terminal.
#pragma once

#include <string>

#include "simulator/study/run_study.h"

namespace railyard {

// Returns a line per point and figure: the mean over its seeds with its 95 % bounds, and the
// median; with one seed, the figure itself. Shows at most `rows_max` lines, and says how many more
// there are.
std::string StudyTable(const Study& study, const StudyResult& result, size_t rows_max);

}  // namespace railyard
