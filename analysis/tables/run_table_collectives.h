// SPDX-License-Identifier: GPL-2.0-only
// Of a run's table: how long its collectives took, by kind and the slowest one by one, and which
// were replayed otherwise than their log says.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintCollectives(const RunResult& result, TerminalText& text);

}  // namespace railyard
