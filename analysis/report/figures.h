// SPDX-License-Identifier: GPL-2.0-only
// Writes charts as files for papers: SVG and PDF by gnuplot, with their data and the script that
// drew them.
#pragma once

#include <string>

#include "analysis/report/chart.h"

namespace railyard {

// Returns a table as CSV (RFC 4180), with the names of its columns as the header.
std::string CsvOf(const ChartTable& table);

// Returns a gnuplot script that draws `chart` from TABLE.csv to ID.svg and ID.pdf in its directory.
std::string GnuplotScript(const Chart& chart);

// Writes TABLE.csv, ID.gp, ID.svg and ID.pdf of every chart into `directory`, which is created if
// it is absent: all of them, or none. Throws EnvironmentError if gnuplot is not installed or fails,
// or if a file cannot be written.
void WriteFigures(const ResultStore& store, const std::string& directory);

}  // namespace railyard
