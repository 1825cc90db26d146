// SPDX-License-Identifier: GPL-2.0-only
// Times of trace events: microseconds since some epoch, with decimals.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard {

// Picoseconds since the epoch do not fit 64 bits, those within a capture do.
struct EventTime {
  int64_t microseconds = 0;
  int64_t picoseconds = 0;  // 0 to 999,999
};

// "1683564901554112", "4458676524670.502", "1.5e3"; nullopt for what is no time, NaN included.
std::optional<EventTime> ParseEventTime(std::string_view text);
// How long after `from` `to` is, negative if before; nullopt beyond 100 days.
std::optional<int64_t> PicosecondsBetween(const EventTime& from, const EventTime& to);

}  // namespace railyard
