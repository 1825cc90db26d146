// SPDX-License-Identifier: GPL-2.0-only
// Prints the part of the table about collectives: their durations by kind, the slowest, and those
// that were replayed with an algorithm other than their log states.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintCollectives(const RunResult& result, TerminalText& text);

}  // namespace railyard
