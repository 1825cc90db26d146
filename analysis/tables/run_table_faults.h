// SPDX-License-Identifier: GPL-2.0-only
// Of a run's table: what each fault did, and which packets were lost.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintFaults(const RunResult& result, TerminalText& text);

}  // namespace railyard
