// SPDX-License-Identifier: GPL-2.0-only
// Columns of text that line up on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace railyard {

enum class Align : uint8_t { kLeft, kRight };

struct TextColumn {
  std::string title;
  Align align = Align::kRight;
};

// Each column is as wide as its widest cell; two spaces between columns, none at the end of a line.
// A UTF-8 character counts as one column.
class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns);

  // Precondition: as many cells as columns.
  void AddRow(std::vector<std::string> cells);
  // A line of its own below the last row, outside the columns.
  void AddLine(std::string line);
  // The title line and the rows, each ended.
  std::string ToString() const;

 private:
  // A row, or, without cells, a line.
  struct Row {
    std::vector<std::string> cells;
    std::string line;
  };

  std::vector<TextColumn> columns_;
  std::vector<Row> rows_;
};

}  // namespace railyard
