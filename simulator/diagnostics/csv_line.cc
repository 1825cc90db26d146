// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/csv_line.h"

namespace railyard {

std::optional<std::vector<CsvCell>> SplitCsvLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<CsvCell> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back().text += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (line[i] == ',' && !quoted) {
      cells.push_back({{}, static_cast<int>(i) + 2});
      if (cells.size() > kCsvCellsMax) return cells;
    } else {
      cells.back().text += line[i];
    }
  }
  if (quoted) return std::nullopt;
  return cells;
}

void AppendCsvField(std::string_view text, std::string& line) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line.append(text);
    return;
  }
  line.push_back('"');
  for (const char c : text) {
    if (c == '"') line.push_back('"');
    line.push_back(c);
  }
  line.push_back('"');
}

}  // namespace railyard
