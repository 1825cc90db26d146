// SPDX-License-Identifier: GPL-2.0-only
// The part of the printed table about traffic: bytes per tier, and the kind of traffic.
#pragma once

#include "analysis/result/run_result.h"
#include "analysis/tables/terminal_text.h"

namespace railyard {

void PrintTraffic(const RunResult& result, TerminalText& text);

}  // namespace railyard
