// SPDX-License-Identifier: GPL-2.0-only
// Time stamps as NCCL_DEBUG_TIMESTAMP_FORMAT puts them before HOST:PID:TID: `[%F %T] ` by default,
// with decimals where the format has `%Nf`; `T` between date and time, no date, or no brackets will
// do, and so will seconds since 1970 in brackets (`[%s] `).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard {

struct LogTime {
  int64_t ns = 0;    // since 1970, or since midnight where there is no date
  int decimals = 0;  // of its seconds, 0 to 9: the clock's resolution
};

// The time stamp that ends `text`, but for blanks; nullopt where there is none.
std::optional<LogTime> TimeAtEndOf(std::string_view text);

}  // namespace railyard
