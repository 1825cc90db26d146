// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_line.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "simulator/units/number.h"

namespace railyard {
namespace {

constexpr size_t kHalfColumns = 4;  // time algbw busbw #wrong
// Rows without a header have `i_min i_max i_p99 i_cv%` behind each half if they have so many words.
constexpr size_t kStatisticsColumnCount = 21;
constexpr size_t kInPlaceStatisticsColumn = 13;
constexpr size_t kWordsMax = 48;

constexpr std::string_view kSpace = " \t\r\n\v\f";
using Words = std::array<std::string_view, kWordsMax>;

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

// Returns true for what may follow a half: a date, as in "2026-02-03 10:11:12", or the name of an
// algorithm.
bool IsOption(std::string_view word) {
  const bool is_date = word.size() == 10 && word[4] == '-' && word[7] == '-';
  const bool is_name = word.size() > 2 && word != "N/A" &&
                       std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_date || is_name;
}

// Returns where the second half of a row of so many words begins.
size_t SecondTimeOf(const NcclTestsColumns& columns, size_t count) {
  if (columns.second_time > 0) return columns.second_time;
  return count >= kStatisticsColumnCount ? kInPlaceStatisticsColumn
                                         : columns.first_time + kHalfColumns;
}

// Returns true for "10:11:12" and for what holds it, such as "2026-02-03T10:11:12.123Z".
bool HasTimeOfDay(std::string_view text) {
  constexpr size_t kBytes = 8;
  for (size_t at = 0; at + kBytes <= text.size(); ++at) {
    if (text[at + 2] == ':' && text[at + 5] == ':' && IsDigits(text.substr(at, 2)) &&
        IsDigits(text.substr(at + 3, 2)) && IsDigits(text.substr(at + 6, 2))) {
      return true;
    }
  }
  return false;
}

// Returns what follows a time stamp of up to six words, if that belongs to a table; else nothing.
std::string_view AfterTimeStamp(std::string_view text) {
  constexpr int kStampWordsMax = 6;
  size_t at = 0;
  for (int i = 0; i < kStampWordsMax; ++i) {
    at = text.find_first_of(kSpace, at);
    at = text.find_first_not_of(kSpace, at);
    if (at == std::string_view::npos) return {};
    if (HasTimeOfDay(text.substr(0, at)) && BelongsToTable(text.substr(at))) return text.substr(at);
  }
  return {};
}

}  // namespace

bool TakeNcclTestsHeader(std::string_view comment, NcclTestsColumns& columns) {
  Words words;
  const size_t count = SplitWords(comment.substr(1), words);
  const auto place_of = [&](std::string_view name, size_t from) {
    return static_cast<size_t>(std::find(words.begin() + from, words.begin() + count, name) -
                               words.begin());
  };
  if (place_of("in-place", 0) < count || place_of("out-of-place", 0) < count) {
    columns.has_in_place_only = place_of("out-of-place", 0) == count;
    return true;
  }
  const bool are_cpu_times = place_of("cputime", 0) < count;
  const std::string_view time = are_cpu_times ? "cputime" : "time";
  const size_t first = place_of(time, 0);
  // Size and count are the first words of rows, too.
  if (first == count || words[0] != "size" || words[1] != "count") return false;
  const size_t second = place_of(time, first + 1);
  const size_t root = place_of("root", 0);
  columns.type = std::min(place_of("type", 0), first);
  columns.root = root < first ? root : 0;
  columns.first_time = first;
  columns.second_time = second < count ? second : 0;
  columns.are_cpu_times = are_cpu_times;
  return true;
}

std::optional<NcclTestsLine> ParseNcclTestsLine(std::string_view line,
                                                const NcclTestsColumns& columns) {
  Words words;
  const size_t count = SplitWords(line, words);
  NcclTestsLine row;
  if (count < columns.first_time + kHalfColumns || !ParseNumber(words[0], row.bytes) ||
      !ParseNumber(words[1], row.count)) {
    return std::nullopt;
  }
  row.type = words[columns.type];
  row.root = columns.root > 0 ? words[columns.root] : "-1";
  const std::string_view first = words[columns.first_time];
  const size_t second = SecondTimeOf(columns, count);
  const size_t behind_first = columns.first_time + kHalfColumns;
  if (count == behind_first || IsOption(words[behind_first])) {
    (columns.has_in_place_only ? row.in_place_us : row.out_of_place_us) = first;
    return row;
  }
  if (count < second + kHalfColumns) return std::nullopt;
  row.out_of_place_us = first;
  row.in_place_us = words[second];
  return row;
}

std::optional<DefectiveRow> FindDefectOfRow(std::string_view line,
                                            const NcclTestsColumns& columns) {
  Words words;
  const size_t count = SplitWords(line, words);
  if (count == 0 || !IsDigits(words[0])) return std::nullopt;
  const size_t expected = SecondTimeOf(columns, count) + kHalfColumns;
  if (count < expected) {
    return DefectiveRow{
        .is_truncated = true,
        .detail = fmt::format("a row of {} columns (expected {} or more)", count, expected)};
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
  for (const std::string_view tag : {"<stdout>:", "<stderr>:"}) {
    constexpr size_t kTagAtMax = 96;
    const size_t at = text.substr(0, kTagAtMax).find(tag);
    if (at != std::string_view::npos) return text.substr(at + tag.size());
  }
  if (BelongsToTable(text)) return line;
  for (const std::string_view separator : {": ", "] ", "| ", " F "}) {
    const size_t at = text.find(separator);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + separator.size());
    if (BelongsToTable(rest)) return rest;
  }
  if (const std::string_view rest = AfterTimeStamp(text); !rest.empty()) return rest;
  size_t end = 0;  // of the prefix
  if (text.front() == '[') {
    end = std::min(text.find(']'), text.size() - 1) + 1;
    const bool is_rank = IsDigits(text.substr(1, end - 2));
    const std::string_view rest = text.substr(end);
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
