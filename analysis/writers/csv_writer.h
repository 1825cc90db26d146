// SPDX-License-Identifier: GPL-2.0-only
// Writes a result table as RFC 4180 text with "\n" line ends: a header line, then one line per row.
// Absent figures are empty, booleans `true` or `false`, numbers in their shortest exact form.
#pragma once

#include "analysis/writers/result_tables.h"
#include "simulator/files/output_file.h"

namespace railyard {

void WriteCsv(const ResultTable& table, OutputFile& file);

}  // namespace railyard
