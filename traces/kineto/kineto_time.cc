// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_time.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace railyard {
namespace {

constexpr int64_t kPicosecondsPerMicrosecond = 1'000'000;
constexpr int64_t kMicrosecondsMax = int64_t{1} << 60;
constexpr int64_t kSpanMicrosecondsMax = 8'640'000'000'000;  // 100 days

std::optional<EventTime> ParseScientific(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) ||
      std::abs(value) > static_cast<double>(kMicrosecondsMax)) {
    return std::nullopt;
  }
  const double whole = std::floor(value);
  return EventTime{static_cast<int64_t>(whole),
                   static_cast<int64_t>((value - whole) * double{kPicosecondsPerMicrosecond})};
}

}  // namespace

std::optional<EventTime> ParseEventTime(std::string_view text) {
  EventTime time;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, time.microseconds);
  if (error != std::errc() || time.microseconds > kMicrosecondsMax ||
      time.microseconds < -kMicrosecondsMax) {
    return std::nullopt;
  }
  if (stop == end) return time;
  if (*stop != '.' || text.front() == '-') return ParseScientific(text);
  int64_t unit = kPicosecondsPerMicrosecond;
  for (const char* at = stop + 1; at != end; ++at) {
    if (*at < '0' || *at > '9') return ParseScientific(text);
    unit /= 10;
    time.picoseconds += (*at - '0') * unit;
  }
  return time;
}

std::optional<int64_t> PicosecondsBetween(const EventTime& from, const EventTime& to) {
  const int64_t microseconds = to.microseconds - from.microseconds;
  if (microseconds > kSpanMicrosecondsMax || microseconds < -kSpanMicrosecondsMax) {
    return std::nullopt;
  }
  return microseconds * kPicosecondsPerMicrosecond + to.picoseconds - from.picoseconds;
}

bool IsBefore(const EventTime& a, const EventTime& b) {
  return std::pair(a.microseconds, a.picoseconds) < std::pair(b.microseconds, b.picoseconds);
}

}  // namespace railyard
