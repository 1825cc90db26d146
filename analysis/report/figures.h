// SPDX-License-Identifier: GPL-2.0-only
// Charts as files for papers: SVG and PDF by gnuplot, with their data and the script that drew
// them.
#pragma once

#include <string>

#include "analysis/report/chart.h"

namespace railyard {

// The tables of `chart` as CSV (RFC 4180), its header the names of its columns.
std::string CsvOf(const ChartTable& table);

// A gnuplot script that draws `chart` from TABLE.csv to ID.svg and ID.pdf in its directory.
std::string GnuplotScript(const Chart& chart);

// Writes TABLE.csv, ID.gp, ID.svg and ID.pdf of every chart into `directory`, which is created
// where it is absent. EnvironmentError where gnuplot is not installed or fails, or a file cannot be
// written.
void WriteFigures(const ResultStore& store, const std::string& directory);

}  // namespace railyard
