// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/text_table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "simulator/diagnostics/check.h"

namespace railyard {

namespace {

size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte
  }));
}

void AppendCell(const std::string& cell, Align align, size_t width, std::string& line) {
  const std::string padding(width - Width(cell), ' ');
  line += align == Align::kLeft ? cell + padding : padding + cell;
}

}  // namespace

TextTable::TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

void TextTable::AddRow(std::vector<std::string> cells) {
  SIM_CHECK(cells.size() == columns_.size(), "a row has another number of cells than columns");
  rows_.push_back({.cells = std::move(cells), .line = {}});
}

void TextTable::AddLine(std::string line) {
  rows_.push_back({.cells = {}, .line = std::move(line)});
}

std::string TextTable::ToString() const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const TextColumn& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(Width(column.title));
  }
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row.cells[i]));
    }
  }
  const auto join = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      AppendCell(cells[i], columns_[i].align, widths[i], line);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string text = join(titles);
  for (const Row& row : rows_) text += row.cells.empty() ? row.line + "\n" : join(row.cells);
  return text;
}

}  // namespace railyard
