// SPDX-License-Identifier: GPL-2.0-only
// Prints the part of the table about faults: the effect of each, and the packets that were lost.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintFaults(const RunResult& result, TerminalText& text);

}  // namespace railyard
