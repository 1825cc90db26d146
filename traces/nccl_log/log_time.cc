// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_time.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "simulator/units/number.h"
#include "traces/nccl_log/log_field_reader.h"

namespace railyard {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int kDecimalsMax = 9;
constexpr size_t kStampBytesMax = 40;
constexpr size_t kTimeOfDayBytes = 8;

bool IsTimeCharacter(char c) {
  return IsDigit(c) || c == ':' || c == '-' || c == '.' || c == 'T' || c == 'Z' || c == '+' ||
         c == ' ';
}

// Takes `.FFF` off the end, if it is there. False where it is no such thing.
bool TakeDecimals(std::string_view& text, LogTime& time) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return true;
  const std::string_view digits = text.substr(dot + 1);
  if (digits.size() > kDecimalsMax || !ParseNumber(digits, time.ns)) return false;
  time.decimals = static_cast<int>(digits.size());
  for (int i = time.decimals; i < kDecimalsMax; ++i) time.ns *= 10;
  text = text.substr(0, dot);
  return true;
}

// `HH:MM:SS`
bool AddTimeOfDay(std::string_view text, LogTime& time) {
  int64_t hours = 0;
  int64_t minutes = 0;
  int64_t seconds = 0;
  if (text.size() != kTimeOfDayBytes || text[2] != ':' || text[5] != ':' ||
      !ParseNumber(text.substr(0, 2), hours) || !ParseNumber(text.substr(3, 2), minutes) ||
      !ParseNumber(text.substr(6, 2), seconds) || hours < 0 || hours > 23 || minutes < 0 ||
      minutes > 59 || seconds < 0 || seconds > 60) {
    return false;
  }
  time.ns += ((hours * 60 + minutes) * 60 + seconds) * kNsPerSecond;
  return true;
}

// `YYYY-MM-DD`, of 1970 to 2200: 64 bits of nanoseconds end in 2262.
bool AddDate(std::string_view text, LogTime& time) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  if (text.size() != 10 || text[4] != '-' || text[7] != '-' ||
      !ParseNumber(text.substr(0, 4), year) || !ParseNumber(text.substr(5, 2), month) ||
      !ParseNumber(text.substr(8, 2), day) || year < 1970 || year > 2200) {
    return false;
  }
  const auto date = std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                                std::chrono::day(day));
  if (!date.ok()) return false;
  constexpr int64_t kSecondsPerDay = 86'400;
  time.ns += std::chrono::sys_days(date).time_since_epoch().count() * kSecondsPerDay * kNsPerSecond;
  return true;
}

// Returns how many bytes at the end are an offset from UTC behind a time of day: "-0700" or
// "+02:00". It is the same in all lines of a host.
size_t ZoneBytes(std::string_view text) {
  const size_t sign = text.find_last_of("+-");
  if (sign == std::string_view::npos || text.substr(0, sign).find(':') == std::string_view::npos) {
    return 0;
  }
  const std::string_view zone = text.substr(sign + 1);
  const bool has_colon = zone.size() == 5 && zone[2] == ':';
  const bool is_zone = (zone.size() == 4 || has_colon) &&
                       std::ranges::all_of(zone, [](char c) { return IsDigit(c) || c == ':'; });
  return is_zone ? zone.size() + 1 : 0;
}

}  // namespace

bool HasTimeOfDayNearEnd(std::string_view text) {
  if (text.size() > kStampBytesMax) text.remove_prefix(text.size() - kStampBytesMax);
  LogTime time;
  for (size_t at = 0; at + kTimeOfDayBytes <= text.size(); ++at) {
    if (AddTimeOfDay(text.substr(at, kTimeOfDayBytes), time)) return true;
  }
  return false;
}

std::optional<LogTime> TimeAtEndOf(std::string_view text) {
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  const bool in_brackets = text.ends_with(']');
  if (in_brackets) text.remove_suffix(1);
  size_t begin = text.size();
  while (begin > 0 && text.size() - begin < kStampBytesMax && IsTimeCharacter(text[begin - 1])) {
    --begin;
  }
  if (in_brackets && (begin == 0 || text[begin - 1] != '[')) return std::nullopt;
  text = text.substr(begin);
  if (text.ends_with('Z')) text.remove_suffix(1);
  text.remove_suffix(ZoneBytes(text));
  LogTime time;
  if (!TakeDecimals(text, time)) return std::nullopt;
  constexpr size_t kDateBytes = 10;
  constexpr size_t kDateAndTimeBytes = kDateBytes + 1 + kTimeOfDayBytes;
  if (text.find(':') == std::string_view::npos) {
    constexpr int64_t kSecondsMax = 7'000'000'000;
    constexpr int64_t kSecondsMin = 100'000'000;
    int64_t seconds = 0;
    if (!in_brackets || !ParseNumber(text, seconds) || seconds < kSecondsMin ||
        seconds > kSecondsMax) {
      return std::nullopt;
    }
    time.ns += seconds * kNsPerSecond;
    return time;
  }
  if (text.size() >= kDateAndTimeBytes && !in_brackets) {
    text = text.substr(text.size() - kDateAndTimeBytes);
  }
  if (text.size() == kDateAndTimeBytes) {
    const char separator = text[kDateBytes];
    if ((separator != ' ' && separator != 'T') || !AddDate(text.substr(0, kDateBytes), time)) {
      return std::nullopt;
    }
    text = text.substr(kDateBytes + 1);
  }
  return AddTimeOfDay(text, time) ? std::optional(time) : std::nullopt;
}

}  // namespace railyard
