// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/number_rows.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/csv_line.h"
#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"

namespace railyard {
namespace {

constexpr int kFindingsMax = 20;
constexpr size_t kLineBytesMax = 4096;

class RowReader {
 public:
  RowReader(const std::string& path, const std::vector<NumberColumn>& columns,
            Diagnostics& diagnostics)
      : path_(path), columns_(columns), diagnostics_(diagnostics) {
    for (const NumberColumn& column : columns) {
      if (!header_.empty()) header_ += ',';
      header_ += column.name;
    }
  }

  bool Read(const std::function<std::string(const std::vector<uint64_t>&)>& add) {
    std::ifstream stream = OpenToRead(path_);
    std::string line(kLineBytesMax + 1, '\0');
    while (findings_ < kFindingsMax && !stream.eof()) {
      stream.getline(line.data(), static_cast<std::streamsize>(line.size()));
      CheckReading(stream, path_);
      if (stream.eof() && stream.gcount() == 0) break;
      ++line_;
      if (stream.fail() && !stream.eof()) {
        Error(1, fmt::format("the line is too long (expected lines of {} bytes at most)",
                             kLineBytesMax));
        return false;
      }
      const auto taken = static_cast<size_t>(stream.gcount());  // with the end of the line
      const std::optional<std::vector<CsvCell>> cells =
          SplitCsvLine({line.data(), stream.eof() ? taken : taken - 1});
      if (!cells) Error(1, "a quote is not closed");
      if (line_ == 1) {
        if (!cells || !ReadHeader(*cells)) return false;
      } else if (cells && !(cells->size() == 1 && cells->front().text.empty())) {
        std::string wrong = ReadRow(*cells) ? add(values_) : std::string();
        if (!wrong.empty()) Error(1, std::move(wrong));
      }
    }
    if (line_ == 0) {
      Error(1, fmt::format("the file is empty (expected a first line \"{}\")", header_));
    }
    return findings_ == 0;
  }

 private:
  bool ReadHeader(const std::vector<CsvCell>& cells) {
    cell_count_ = cells.size();
    for (const NumberColumn& column : columns_) {
      const auto found = std::ranges::find(cells, column.name, &CsvCell::text);
      if (found == cells.end()) {
        Error(1, fmt::format("there is no column {} (expected \"{}\", among others or not)",
                             column.name, header_));
        return false;
      }
      const auto again = std::ranges::find(found + 1, cells.end(), column.name, &CsvCell::text);
      if (again != cells.end()) {
        Error(again->column,
              fmt::format("column {} is given twice (expected it once)", column.name));
        return false;
      }
      cell_of_column_.push_back(static_cast<size_t>(found - cells.begin()));
    }
    return true;
  }

  bool ReadRow(const std::vector<CsvCell>& cells) {
    if (cells.size() != cell_count_) {
      Error(1,
            fmt::format("{} cells (expected {}, as in the first line)", cells.size(), cell_count_));
      return false;
    }
    values_.assign(columns_.size(), 0);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const CsvCell& cell = cells[cell_of_column_[i]];
      if (ParseNumber(cell.text, values_[i]) && values_[i] <= columns_[i].max) continue;
      Error(cell.column, fmt::format("{}: {} (expected a whole number, 0 to {})", columns_[i].name,
                                     Quote(cell.text), columns_[i].max));
      return false;
    }
    return true;
  }

  void Error(int column, std::string what) {
    ++findings_;
    diagnostics_.Error({.file = path_, .line = std::max(line_, 1), .column = column}, "",
                       std::move(what));
  }

  const std::string& path_;
  const std::vector<NumberColumn>& columns_;
  Diagnostics& diagnostics_;
  std::string header_;
  size_t cell_count_ = 0;
  std::vector<size_t> cell_of_column_;
  std::vector<uint64_t> values_;
  int line_ = 0;
  int findings_ = 0;
};

}  // namespace

bool ReadNumberRows(const std::string& path, const std::vector<NumberColumn>& columns,
                    const std::function<std::string(const std::vector<uint64_t>&)>& add,
                    Diagnostics& diagnostics) {
  return RowReader(path, columns, diagnostics).Read(add);
}

}  // namespace railyard
