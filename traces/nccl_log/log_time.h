// SPDX-License-Identifier: GPL-2.0-only
// Reads the time stamps that NCCL_DEBUG_TIMESTAMP_FORMAT writes before HOST:PID:TID: `[%F %T] ` by
// default, with decimals if the format has `%Nf`. Also accepts `T` between date and time, a missing
// date, missing brackets, and seconds since 1970 in brackets (`[%s] `).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard {

struct LogTime {
  int64_t ns = 0;    // since 1970, or since midnight without a date
  int decimals = 0;  // of the seconds, 0 to 9: the clock's resolution
};

// Returns the time stamp with which `text` ends, disregarding blanks; nullopt if there is none.
std::optional<LogTime> TimeAtEndOf(std::string_view text);

// Returns true if there is a time of day, `HH:MM:SS`, among the last bytes of `text`: those of a
// stamp in any format.
bool HasTimeOfDayNearEnd(std::string_view text);

}  // namespace railyard
