// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/figures.h"

#include <filesystem>

#include <fmt/format.h>

#include "analysis/tables/utf8.h"
#include "simulator/diagnostics/csv_line.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/child_process.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

void AppendCell(const StoredValue& value, std::string& line) {
  if (const auto* integer = std::get_if<int64_t>(&value)) line += fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) line += fmt::format("{}", *real);
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr) AppendCsvField(ToValidUtf8(*text), line);
}

}  // namespace

std::string CsvOf(const ChartTable& table) {
  std::string csv;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    csv += (i == 0 ? "" : ",") + table.columns[i];
  }
  csv += '\n';
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) csv += ',';
      AppendCell(row[i], csv);
    }
    csv += '\n';
  }
  return csv;
}

void WriteFigures(const ResultStore& store, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    throw EnvironmentError(fmt::format("cannot create {}: {}", directory, error.message()));
  for (const Chart& chart : ChartsOf(store)) {
    for (const ChartTable& table : chart.tables) {
      WriteOutput((fs::path(directory) / (table.name + ".csv")).string(), CsvOf(table));
    }
    const std::string script = chart.id + ".gp";
    WriteOutput((fs::path(directory) / script).string(), GnuplotScript(chart));
    const ProgramEnd gnuplot = OutputOf({"gnuplot", script}, directory);
    if (gnuplot.status == kNotStarted) {
      throw EnvironmentError("cannot start gnuplot: install the Debian package gnuplot-nox");
    }
    if (gnuplot.status != 0) {
      throw EnvironmentError(fmt::format("gnuplot ended with status {} at {}/{}: {}",
                                         gnuplot.status, directory, script, gnuplot.OneLine()));
    }
  }
}

}  // namespace railyard
