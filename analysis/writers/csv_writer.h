// SPDX-License-Identifier: GPL-2.0-only
// Writes a result table as RFC 4180 text with "\n" line ends: a header line, then one line per row.
// Absent figures are empty, booleans `true` or `false`, numbers in their shortest exact form.
#pragma once

#include <string>
#include <string_view>

#include "analysis/writers/result_tables.h"
#include "simulator/files/output_file.h"

namespace railyard {

// Appends `text` to `line`, in double quotes if it holds a comma, a quote or a line end.
void AppendCsvField(std::string_view text, std::string& line);

void WriteCsv(const ResultTable& table, OutputFile& file);

}  // namespace railyard
