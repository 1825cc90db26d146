// SPDX-License-Identifier: GPL-2.0-only
// The readers that the program has, by the names of their formats.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/reading/trace_reader.h"

namespace railyard {

std::span<const TraceReader> TraceReaders();
// Returns nullptr if no reader has this name.
const TraceReader* FindTraceReader(std::string_view format);
std::vector<std::string> TraceFormatNames();

}  // namespace railyard
