// SPDX-License-Identifier: GPL-2.0-only
// Prints the result of a run as text for a terminal.
#pragma once

#include <string>

#include "analysis/result/run_result.h"

namespace railyard {

// Returns lines of at most 100 columns, each with a line end. Names from input files are truncated
// to fit, and their control characters are replaced.
std::string PrintRunTable(const RunResult& result);

}  // namespace railyard
