// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/measure/scoreboard.h"

namespace railyard {

// Returns the page of a scoreboard: errors by machine and collective, and by size, with the spread
// between machines of a kind. Throws EnvironmentError unless CanWriteReports(). Precondition: there
// is a row.
std::string FidelityPage(const Scoreboard& board, const FidelityResult& result);

}  // namespace railyard
