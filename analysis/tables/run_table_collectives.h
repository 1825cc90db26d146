// SPDX-License-Identifier: GPL-2.0-only
// The part of the printed table about collectives: their durations by kind, the slowest ones, and
// those that were replayed with another algorithm than their log states.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintCollectives(const RunResult& result, TerminalText& text);

}  // namespace railyard
