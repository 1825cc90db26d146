// SPDX-License-Identifier: GPL-2.0-only
// Prints the result of a run as text for a terminal.
#pragma once

#include <string>

#include "analysis/result/run_result.h"

namespace railyard {

// Returns lines of at most 100 columns, the last one ended. Names from input files are truncated to
// fit, and their control characters replaced.
std::string PrintRunTable(const RunResult& result);

}  // namespace railyard
