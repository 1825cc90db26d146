// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/number_rows.h"

#include <charconv>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr int kFindingsMax = 20;

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
    std::ifstream stream(path_);
    std::string line;
    while (findings_ < kFindingsMax && std::getline(stream, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line_ == 1) {
        if (line != header_) {
          Error(1, fmt::format("not the expected columns (expected \"{}\")", header_));
          return false;
        }
      } else if (!line.empty()) {
        std::string wrong = ReadRow(line) ? add(values_) : std::string();
        if (!wrong.empty()) Error(1, std::move(wrong));
      }
    }
    if (line_ == 0) Error(1, fmt::format("the file is empty (expected \"{}\")", header_));
    return findings_ == 0;
  }

 private:
  bool ReadRow(const std::string& line) {
    values_.assign(columns_.size(), 0);
    const char* at = line.data();
    const char* const end = line.data() + line.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto [stop, error] = std::from_chars(at, end, values_[i]);
      const bool is_last = i + 1 == columns_.size();
      const int column = static_cast<int>(at - line.data()) + 1;
      if (error != std::errc() || (is_last ? stop != end : stop == end || *stop != ',')) {
        Error(column, fmt::format("{} is not a whole number (expected rows of \"{}\")",
                                  columns_[i].name, header_));
        return false;
      }
      if (values_[i] > columns_[i].max) {
        Error(column, fmt::format("{} {} is out of range (expected 0 to {})", columns_[i].name,
                                  values_[i], columns_[i].max));
        return false;
      }
      at = stop + 1;
    }
    return true;
  }

  void Error(int column, std::string what) {
    ++findings_;
    diagnostics_.Error({.file = path_, .line = line_, .column = column}, "", std::move(what));
  }

  const std::string& path_;
  const std::vector<NumberColumn>& columns_;
  Diagnostics& diagnostics_;
  std::string header_;
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
