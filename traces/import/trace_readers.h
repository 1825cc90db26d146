// SPDX-License-Identifier: GPL-2.0-only
// Lists the program's readers by the names of their formats.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/reading/trace_reader.h"

namespace railyard {

std::span<const TraceReader> TraceReaders();
// Returns the reader of this name, or nullptr.
const TraceReader* FindTraceReader(std::string_view format);
std::vector<std::string> TraceFormatNames();

}  // namespace railyard
