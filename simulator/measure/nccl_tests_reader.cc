// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/nccl_tests_reader.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/measure/measured_table.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {
namespace {

constexpr size_t kColumnCount =
    13;  // size count type redop root, then time algbw busbw #wrong twice
constexpr size_t kTimeColumn = 5;

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

template <typename Number>
bool Parse(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<NcclTestsRow> ReadNcclTests(const std::string& path, Diagnostics& diagnostics) {
  std::vector<NcclTestsRow> rows;
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    diagnostics.Error({.file = path}, "", why + " (expected what an nccl-tests program printed)");
    return rows;
  }
  std::ifstream file(path);
  if (!file) throw EnvironmentError(path + ": cannot be read");
  std::string line;
  bool has_row = false;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::vector<std::string> words = Words(line);
    NcclTestsRow row;
    row.where = {path, number, 1};
    uint64_t count = 0;
    if (words.size() < kColumnCount || !Parse(words[0], row.bytes) || !Parse(words[1], count))
      continue;
    has_row = true;
    const std::string& time = words[kTimeColumn];
    if (!Parse(time, row.time_us) || !(row.time_us >= kMeasuredUsMin) ||
        row.time_us > kMeasuredUsMax) {
      diagnostics.Error(
          row.where, "time",
          fmt::format("{} is not a time (expected microseconds, 0.001 to 1e12)", Quote(time)));
    } else if (row.bytes > 0) {
      rows.push_back(row);
    }
  }
  if (!has_row) {
    diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                      "no row of an nccl-tests table (expected lines that begin with a size and a "
                      "count and have 13 columns)");
  }
  return rows;
}

}  // namespace railyard
