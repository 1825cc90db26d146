// SPDX-License-Identifier: GPL-2.0-only
// Aligns columns of text for a terminal.
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

// Prints each column as wide as its widest cell, with two spaces between columns and none at the
// end of a line. A UTF-8 character counts as one column.
class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns);

  // Precondition: there is one cell per column.
  void AddRow(std::vector<std::string> cells);
  // Adds a line below the last row, outside the columns.
  void AddLine(std::string line);
  // Returns the title line and the rows, each ended by a line end.
  std::string ToString() const;

 private:
  // Holds a row of cells or, if it has no cells, a line.
  struct Row {
    std::vector<std::string> cells;
    std::string line;
  };

  std::vector<TextColumn> columns_;
  std::vector<Row> rows_;
};

}  // namespace railyard
