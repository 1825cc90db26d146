// SPDX-License-Identifier: GPL-2.0-only
// Prints the part of the table about traffic: bytes per tier, and figures that characterize the
// traffic.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintTraffic(const RunResult& result, TerminalText& text);

}  // namespace railyard
