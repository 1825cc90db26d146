// SPDX-License-Identifier: GPL-2.0-only
// Imports files that any supported tool captured as a trace.
#pragma once

#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/trace_reader.h"

namespace railyard {

// The name of a format that is detected from the contents of the files.
inline constexpr const char* kAutoFormat = "auto";

// Reads `paths` (files, directories, tar archives, compressed or not), which together are one job.
// `format` is a reader's name or kAutoFormat. With kAutoFormat all files must be of one format,
// except that files of no known format in directories and archives are skipped with a warning.
// Precondition: the format is known. The report is complete even if there is no trace, which is an
// error in `diagnostics`.
TraceImport ImportFiles(const std::vector<std::string>& paths, const std::string& format,
                        const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace railyard
