// SPDX-License-Identifier: GPL-2.0-only
// What happened in a run, as text for a terminal.
#pragma once

#include <string>

#include "analysis/result/run_result.h"

namespace railyard {

// Several lines of at most 100 columns each, the last one ended. Names that come from the outside
// are cut to fit, and their control characters replaced.
std::string PrintRunTable(const RunResult& result);

}  // namespace railyard
