// SPDX-License-Identifier: GPL-2.0-only
// Prints the part of the table about restarts: the time that jobs lost to restarts and checkpoints.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

// Prints nothing if no job restarted or saved checkpoints.
void PrintRestarts(const RunResult& result, TerminalText& text);

}  // namespace railyard
