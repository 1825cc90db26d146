// SPDX-License-Identifier: GPL-2.0-only
// Reads tables of comma-separated values whose columns are known.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/csv_line.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

class CsvTable {
 public:
  // `what` the file must be, for findings: "a table of times". `columns` outlives the object.
  CsvTable(std::string path, std::string what, std::span<const std::string_view> columns,
           Diagnostics& diagnostics);

  // Reads the file and calls `read_row` for each line but the first, which has the names of the
  // columns; blank lines are passed over. Ends at twenty findings. A file that cannot be read or
  // has more than 256 MiB is a finding.
  void Read(const std::function<void(const std::vector<CsvCell>&)>& read_row);

  // The following are of the current line.
  int line() const { return line_; }
  // Adds a finding about a cell: what would be right there.
  void Refuse(const CsvCell& cell, size_t column, const std::string& expected);
  void Error(int column, const std::string& what);
  int finding_count() const { return findings_; }

 private:
  bool IsHeader(const std::string& line);
  void ReadLine(const std::string& line,
                const std::function<void(const std::vector<CsvCell>&)>& read_row);

  std::string path_;
  std::string what_;
  std::span<const std::string_view> columns_;
  Diagnostics& diagnostics_;
  int line_ = 0;
  int findings_ = 0;
};

}  // namespace railyard
