// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_line.h"

#include <array>
#include <cstddef>

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

}  // namespace

std::optional<NcclTestsLine> ParseNcclTestsLine(std::string_view line) {
  std::array<std::string_view, kStatisticsColumnCount> words;
  size_t count = 0;
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  for (size_t at = line.find_first_not_of(kSpace);
       at != std::string_view::npos && count < words.size();) {
    const size_t end = line.find_first_of(kSpace, at);
    words[count++] = line.substr(at, end - at);
    at = line.find_first_not_of(kSpace, end);
  }
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

std::optional<double> ParseMeasuredUs(std::string_view text) {
  double us = 0;
  if (!ParseNumber(text, us) || !(us >= kMeasuredUsMin) || us > kMeasuredUsMax) return std::nullopt;
  return us;
}

}  // namespace railyard
