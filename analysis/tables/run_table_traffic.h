// SPDX-License-Identifier: GPL-2.0-only
// Of a run's table: where its bytes went, and what kind of traffic they were.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintTraffic(const RunResult& result, TerminalText& text);

}  // namespace railyard
