// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/csv_table.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

constexpr uint64_t kTableBytesMax = uint64_t{256} << 20;
constexpr int kTableFindingsMax = 20;

}  // namespace

CsvTable::CsvTable(std::string path, std::string what, std::span<const std::string_view> columns,
                   Diagnostics& diagnostics)
    : path_(std::move(path)),
      what_(std::move(what)),
      columns_(columns),
      diagnostics_(diagnostics) {}

void CsvTable::Read(const std::function<void(const std::vector<CsvCell>&)>& read_row) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) {
    ++findings_;
    diagnostics_.Error({path_}, "",
                       fmt::format("not a file that can be read (expected {})", what_));
    return;
  }
  if (std::filesystem::file_size(path_, error) > kTableBytesMax) {
    ++findings_;
    diagnostics_.Error({path_}, "",
                       fmt::format("larger than {} can be (expected at most 256 MiB)", what_));
    return;
  }
  std::ifstream stream = OpenToRead(path_);
  std::string line;
  while (findings_ < kTableFindingsMax && std::getline(stream, line)) {
    ++line_;
    if (line_ == 1) {
      if (!IsHeader(line)) return;
    } else if (!line.empty() && line != "\r") {
      ReadLine(line, read_row);
    }
  }
  CheckReading(stream, path_);
  if (line_ == 0) Error(1, "the file is empty (expected a line of column names)");
}

bool CsvTable::IsHeader(const std::string& line) {
  const auto cells = SplitCsvLine(line);
  const bool is_header = cells && std::ranges::equal(*cells, columns_, {}, &CsvCell::text);
  if (!is_header) {
    Error(1, fmt::format("not the column names of {} (expected \"{}\")", what_,
                         fmt::join(columns_, ",")));
  }
  return is_header;
}

void CsvTable::ReadLine(const std::string& line,
                        const std::function<void(const std::vector<CsvCell>&)>& read_row) {
  const auto cells = SplitCsvLine(line);
  if (!cells) {
    Error(1, "a quote is not closed");
  } else if (cells->size() != columns_.size()) {
    Error(1,
          fmt::format("{}{} fields (expected {})", cells->size() > kCsvCellsMax ? "at least " : "",
                      cells->size(), columns_.size()));
  } else {
    read_row(*cells);
  }
}

void CsvTable::Refuse(const CsvCell& cell, size_t column, const std::string& expected) {
  Error(cell.column, fmt::format("{}: {} ({})", columns_[column], Quote(cell.text), expected));
}

void CsvTable::Error(int column, const std::string& what) {
  ++findings_;
  diagnostics_.Error({path_, line_ == 0 ? 1 : line_, column}, "", what);
}

}  // namespace railyard
