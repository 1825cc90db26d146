// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_line.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "traces/reading/number.h"

namespace railyard {
namespace {

// size count type redop root, then time algbw busbw #wrong twice
constexpr size_t kColumnCount = 13;
constexpr size_t kTimeColumn = 5;
constexpr size_t kInPlaceColumn = 9;
// With `i_min i_max i_p99 i_cv%` behind each half.
constexpr size_t kStatisticsColumnCount = 21;
constexpr size_t kInPlaceStatisticsColumn = 13;

constexpr std::string_view kSpace = " \t\r\n\v\f";
using Words = std::array<std::string_view, kStatisticsColumnCount>;

// Returns the number of words, as far as there is room.
size_t SplitWords(std::string_view line, Words& words) {
  size_t count = 0;
  for (size_t at = line.find_first_not_of(kSpace);
       at != std::string_view::npos && count < words.size();) {
    const size_t end = line.find_first_of(kSpace, at);
    words[count++] = line.substr(at, end - at);
    at = line.find_first_not_of(kSpace, end);
  }
  return count;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns true for a comment, and for a line that begins with two numbers, as rows do.
bool BelongsToTable(std::string_view line) {
  Words words;
  const size_t count = SplitWords(line, words);
  if (count > 0 && words[0].starts_with('#')) return true;
  return count > 1 && IsDigits(words[0]) && IsDigits(words[1]);
}

}  // namespace

std::optional<NcclTestsLine> ParseNcclTestsLine(std::string_view line) {
  Words words;
  const size_t count = SplitWords(line, words);
  NcclTestsLine row;
  if (count < kColumnCount || !ParseNumber(words[0], row.bytes) ||
      !ParseNumber(words[1], row.count)) {
    return std::nullopt;
  }
  row.type = words[2];
  row.root = words[4];
  row.out_of_place_us = words[kTimeColumn];
  row.in_place_us =
      words[count == kStatisticsColumnCount ? kInPlaceStatisticsColumn : kInPlaceColumn];
  return row;
}

std::optional<DefectiveRow> FindDefectOfRow(std::string_view line) {
  Words words;
  const size_t count = SplitWords(line, words);
  if (count == 0 || !IsDigits(words[0])) return std::nullopt;
  if (count < kColumnCount) {
    return DefectiveRow{
        .is_truncated = true,
        .detail = fmt::format("a row of {} columns (expected {} or more)", count, kColumnCount)};
  }
  for (size_t column = 0; column < 2; ++column) {
    uint64_t value = 0;
    if (ParseNumber(words[column], value)) continue;
    return DefectiveRow{.detail = fmt::format("its {} is {} (expected a number of 64 bits)",
                                              column == 0 ? "size" : "count",
                                              words[column].substr(0, 40))};
  }
  return std::nullopt;
}

std::string_view WithoutLauncherPrefix(std::string_view line) {
  const size_t first = line.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return line;
  const std::string_view text = line.substr(first);
  for (const std::string_view separator : {": ", "] ", "| ", " F "}) {
    const size_t at = BelongsToTable(text) ? std::string_view::npos : text.find(separator);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + separator.size());
    if (BelongsToTable(rest)) return rest;
  }
  size_t end = 0;  // of the prefix
  if (text.front() == '[') {
    end = std::min(text.find(']'), text.size() - 1) + 1;
    const bool is_rank = IsDigits(text.substr(1, end - 2));
    const std::string_view rest = text.substr(end);
    const bool is_tagged = rest.starts_with("<stdout>:") || rest.starts_with("<stderr>:");
    if (is_tagged) return rest.substr(9);
    return is_rank && rest.starts_with(' ') ? rest : line;
  }
  end = text.find_first_not_of("0123456789");
  const bool is_labelled = end != std::string_view::npos && end > 0 && text[end] == ':' &&
                           (end + 1 == text.size() || text[end + 1] == ' ');
  return is_labelled ? text.substr(end + 1) : line;
}

std::optional<double> ParseMeasuredUs(std::string_view text) {
  double us = 0;
  if (!ParseNumber(text, us) || !(us >= kMeasuredUsMin) || us > kMeasuredUsMax) return std::nullopt;
  return us;
}

}  // namespace railyard
