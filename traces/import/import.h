// SPDX-License-Identifier: GPL-2.0-only
// Captured files become a trace, whatever tool wrote them.
#pragma once

#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/trace_reader.h"

namespace railyard {

// The name that has the files' contents say which format they are of.
inline constexpr const char* kAutoFormat = "auto";

// Reads `paths` (files, directories, tar archives, compressed or not), which are one job. `format`
// is a reader's name or kAutoFormat; then all files must be of one format, but that in directories
// and archives those of none are passed over, with a warning. Precondition: the format is known.
// The report is complete also where there is no trace, which is an error in `diagnostics`.
TraceImport ImportFiles(const std::vector<std::string>& paths, const std::string& format,
                        const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace railyard
