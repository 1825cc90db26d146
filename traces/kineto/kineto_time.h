// SPDX-License-Identifier: GPL-2.0-only
// Parses times of trace events: microseconds since some epoch, with decimals.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard {

// Holds a time. Whole and fractional parts are separate because picoseconds since the epoch do not
// fit 64 bits; those within a capture do.
struct EventTime {
  int64_t microseconds = 0;
  int64_t picoseconds = 0;  // 0 to 999,999
};

// Parses "1683564901554112", "4458676524670.502", "1.5e3"; nullopt for text that is not a time, NaN
// included.
std::optional<EventTime> ParseEventTime(std::string_view text);
// Returns the time from `from` to `to`, negative if `to` is earlier; nullopt beyond 100 days.
std::optional<int64_t> PicosecondsBetween(const EventTime& from, const EventTime& to);
bool IsBefore(const EventTime& a, const EventTime& b);

}  // namespace railyard
