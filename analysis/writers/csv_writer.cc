// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/csv_writer.h"

#include <iterator>
#include <variant>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "simulator/diagnostics/csv_line.h"

namespace railyard {
namespace {

struct CellAppender {
  std::string& line;

  void operator()(std::monostate) const {}
  void operator()(int64_t value) const {
    const fmt::format_int digits(value);
    line.append(digits.data(), digits.size());
  }
  void operator()(double value) const {
    fmt::format_to(std::back_inserter(line), FMT_COMPILE("{}"), value);
  }
  void operator()(bool value) const { line.append(value ? "true" : "false"); }
  void operator()(std::string_view text) const { AppendCsvField(text, line); }
};

}  // namespace

void WriteCsv(const ResultTable& table, OutputFile& file) {
  std::string line;
  for (const ResultColumn& column : table.columns) {
    if (!line.empty()) line.push_back(',');
    AppendCsvField(column.name, line);
  }
  line.push_back('\n');
  file.Write(line);
  std::vector<Cell> cells;
  for (size_t row = 0; row < table.row_count; ++row) {
    cells.clear();
    line.clear();
    table.append_row(row, cells);
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) line.push_back(',');
      std::visit(CellAppender{line}, cells[column]);
    }
    line.push_back('\n');
    file.Write(line);
  }
}

}  // namespace railyard
