// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

struct CsvCell {
  std::string text;
  int column = 1;  // where it begins
};

// The cells of a line of comma-separated values (RFC 4180), a CR at its end left off; nullopt where
// a quote is not closed.
std::optional<std::vector<CsvCell>> SplitCsvLine(std::string_view line);

}  // namespace railyard
