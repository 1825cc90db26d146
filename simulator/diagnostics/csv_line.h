// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

struct CsvCell {
  std::string text;
  int column = 1;  // of its first character
};

// Splits a line of comma-separated values (RFC 4180) into cells, without a CR at its end; nullopt
// if a quote is not closed. A line with more than kCsvCellsMax cells gives the first kCsvCellsMax
// and one more.
std::optional<std::vector<CsvCell>> SplitCsvLine(std::string_view line);
inline constexpr size_t kCsvCellsMax = 4'096;

// Appends `text`, in double quotes if it holds a comma, a quote or a line end.
void AppendCsvField(std::string_view text, std::string& line);

}  // namespace railyard
