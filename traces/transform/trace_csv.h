// SPDX-License-Identifier: GPL-2.0-only
// Writes a trace as a table with one row per operation of each rank.
#pragma once

#include <functional>
#include <string>

#include "traces/trace/trace.h"

namespace railyard {

// Passes the text to `write` piece by piece, the header first. Names of communicators are quoted as
// in RFC 4180.
void WriteTraceCsv(const Trace& trace, const std::function<void(const std::string&)>& write);

}  // namespace railyard
