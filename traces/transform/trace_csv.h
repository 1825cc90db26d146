// SPDX-License-Identifier: GPL-2.0-only
// A trace as a table: a row for each operation of each rank.
#pragma once

#include <functional>
#include <string>

#include "traces/trace/trace.h"

namespace railyard {

// Shows the text piece by piece, the head first. Names of communicators are quoted as RFC 4180
// says.
void WriteTraceCsv(const Trace& trace, const std::function<void(const std::string&)>& write);

}  // namespace railyard
