// SPDX-License-Identifier: GPL-2.0-only
// Formats figures for tables and sentences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railyard {

// The text that is printed in place of a figure that does not exist.
inline constexpr std::string_view kAbsentText = "-";

std::string CountText(uint64_t value);                          // "1,234,567"
std::string PluralText(uint64_t count, std::string_view noun);  // "1 rank", "2 ranks"
std::string PercentText(double share);                          // "22.2 %" of 0.222
std::string SecondsText(double seconds);
std::string BusbwText(std::optional<double> busbw_GBps);
// Returns "1" only for exactly 1, and ">1.000" for values that would round to it.
std::string StretchText(std::optional<double> stretch);
std::string DurationText(std::optional<int64_t> duration_ps);
// Formats a point in time; kAbsentText if it never came.
std::string TimeText(int64_t time_ps);

}  // namespace railyard
