// SPDX-License-Identifier: GPL-2.0-only
// Reads text files of an import line by line.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/input_stream.h"
#include "traces/trace/import_report.h"

namespace railyard {

// Passes each line, without its end, to `visit` until that returns false, and counts them in
// `file`. Returns false if `visit` did, and after a line of more than `bytes_max`, which is an
// error.
bool ForEachLine(InputStream& stream, size_t bytes_max, ImportedFile& file,
                 const std::function<bool(std::string_view)>& visit, Diagnostics& diagnostics);

}  // namespace railyard
